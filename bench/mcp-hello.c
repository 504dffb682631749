/* mcp-hello - what a request costs at the least: libevent's own HTTP server, saying hello to
 * whatever it is asked. Prints its port, as `listening on http://127.0.0.1:PORT/`. The measure for
 * our HTTP transport. */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>

static void on_request(struct evhttp_request *req, void *arg)
{
    struct evbuffer *body = evbuffer_new();

    (void)arg;
    evbuffer_add_printf(body, "hello\n");
    evhttp_send_reply(req, 200, "OK", body);
    evbuffer_free(body);
}

static int port_of(struct evhttp_bound_socket *bound)
{
    struct sockaddr_in at;
    socklen_t          size = sizeof at;

    if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&at, &size) < 0)
        abort();
    return ntohs(at.sin_port);
}

int main(void)
{
    struct event_base          *base = event_base_new();
    struct evhttp              *http = evhttp_new(base);
    struct evhttp_bound_socket *bound;

    evhttp_set_gencb(http, on_request, NULL);
    bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
    if (!bound)
        abort();
    fprintf(stderr, "listening on http://127.0.0.1:%d/\n", port_of(bound));
    event_base_dispatch(base); /* until it is killed */
    return 0;
}
