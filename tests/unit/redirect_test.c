/* The rules of a sandbox's network, for real: each test is a child in a user and a network
 * namespace of its own, once as whoever runs it and, if that is root, once more as nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/redirect.h"
#include "pipe/ports.h"
#include "programs/inside.h"

enum { ORIGINAL_DESTINATION = 80, SECONDS = 20 };

/* ---- in the child: what does not hold is told and ends it ---- */

static void check_original(int accepted, const char *text, uint16_t port)
{
    union address a = {0};
    socklen_t     size = sizeof a;
    int           level = strchr(text, ':') ? IPPROTO_IPV6 : IPPROTO_IP;

    CHECK(getsockopt(accepted, level, ORIGINAL_DESTINATION, &a, &size) == 0);
    address_check(&a, text, port);
}

/* ---- around it ---- */

static void in_namespaces(void (*test)(void))
{
    assert_int_equal(inside_run(test, SECONDS, NULL), 0);
}

/* ---- the tests ---- */

static void tcp(void)
{
    static const char *const hosts[][2] = {
        {"93.184.215.14", "127.0.0.1"}, {"10.0.0.1", "127.0.0.1"}, {"169.254.169.254", "127.0.0.1"},
        {"255.1.2.3", "127.0.0.1"},     {"2606:2800::1", "::1"},   {"fd00::1", "::1"},
        {"64:ff9b::7f00:1", "::1"},
    };
    int fd, v4, v6;

    CHECK(connecting("93.184.215.14", 443, &fd) == ENETUNREACH); /* so it is the rules that do it */
    CHECK(connecting("2606:2800::1", 443, &fd) != 0);
    inside_redirect();
    CHECK(connecting("93.184.215.14", 443, &fd) ==
          ECONNREFUSED); /* at once, while nobody listens */
    v4 = listener("127.0.0.1", PORT_CONNECTIONS);
    v6 = listener("::1", PORT_CONNECTIONS);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        union address own, peer;
        socklen_t     size = sizeof own;

        CHECK(connecting(hosts[i][0], (uint16_t)(443 + i), &fd) == 0);
        CHECK(getsockname(fd, &own.any, &size) == 0);
        address_check(&own, hosts[i][1],
                      own.any.sa_family == AF_INET ? ntohs(own.v4.sin_port)
                                                   : ntohs(own.v6.sin6_port));
        size = sizeof peer;
        CHECK(getpeername(fd, &peer.any, &size) == 0);
        address_check(&peer, hosts[i][0], (uint16_t)(443 + i));
        int accepted = accept(strchr(hosts[i][0], ':') ? v6 : v4, NULL, NULL);
        CHECK(accepted >= 0);
        check_original(accepted, hosts[i][0], (uint16_t)(443 + i));
    }
}

static void tcp_is_redirected(void **state)
{
    (void)state;
    in_namespaces(tcp);
}

static void loopback(void)
{
    int fd, v4, v6, init;

    inside_redirect();
    init = listener("127.0.0.1", PORT_CONNECTIONS);
    CHECK(connecting("127.0.0.1", 8080, &fd) == ECONNREFUSED);
    CHECK(connecting("::1", 8080, &fd) == ECONNREFUSED);
    v4 = listener("127.0.0.1", 8080);
    v6 = listener("::1", 8080);
    CHECK(connecting("127.0.0.1", 8080, &fd) == 0 && accept(v4, NULL, NULL) >= 0);
    CHECK(connecting("0.0.0.0", 8080, &fd) == 0 && accept(v4, NULL, NULL) >= 0);
    CHECK(connecting("::1", 8080, &fd) == 0 && accept(v6, NULL, NULL) >= 0);
    /* straight to init: told by its original destination */
    CHECK(connecting("127.0.0.1", PORT_CONNECTIONS, &fd) == 0);
    check_original(accept(init, NULL, NULL), "127.0.0.1", PORT_CONNECTIONS);
    /* a server of the code's own on every address hears nothing that was meant for others */
    v4 = bound(SOCK_DGRAM, "0.0.0.0", 9000);
    CHECK(sending("127.0.0.1", 9000, &fd) == 0);
    CHECK(sending("93.184.215.14", 9000, &fd) == EPERM);
    v4 = listener("0.0.0.0", 9000);
    CHECK(connecting("93.184.215.14", 9000, &fd) == 0);
    check_original(accept(init, NULL, NULL), "93.184.215.14", 9000);
}

static void loopback_stays_as_it_is(void **state)
{
    (void)state;
    in_namespaces(loopback);
}

/* As many as there may be, to see that they have room. */
static void places(void)
{
    struct redirect_place list[REDIRECT_PLACES_MAX] = {{AF_INET, {127, 0, 0, 1}, 4873},
                                                       {AF_INET6, {[15] = 1}, 4874},
                                                       {AF_INET, {127, 1, 2, 3}, 80}};
    struct err            e = {0};
    int                   fd, v4, v6;

    for (size_t i = 3; i < REDIRECT_PLACES_MAX; i++)
        list[i] = (struct redirect_place){AF_INET6, {[15] = 1}, (uint16_t)(9000 + i)};
    CHECK(redirect_to_init(list, REDIRECT_PLACES_MAX, &e) == 0);
    v4 = listener("127.0.0.1", PORT_CONNECTIONS);
    v6 = listener("::1", PORT_CONNECTIONS);
    CHECK(connecting("127.0.0.1", 4873, &fd) == 0);
    check_original(accept(v4, NULL, NULL), "127.0.0.1", 4873);
    CHECK(connecting("127.1.2.3", 80, &fd) == 0);
    check_original(accept(v4, NULL, NULL), "127.1.2.3", 80);
    CHECK(connecting("::1", 4874, &fd) == 0);
    check_original(accept(v6, NULL, NULL), "::1", 4874);
    CHECK(connecting("::1", 9000 + REDIRECT_PLACES_MAX - 1, &fd) == 0);
    /* its neighbours stay the sandbox's own */
    CHECK(connecting("127.0.0.1", 4874, &fd) == ECONNREFUSED);
    CHECK(connecting("127.0.0.1", 80, &fd) == ECONNREFUSED);
    CHECK(connecting("127.0.0.2", 4873, &fd) == ECONNREFUSED);
    CHECK(connecting("::1", 4873, &fd) == ECONNREFUSED);
}

static void places_of_the_host_are_redirected(void **state)
{
    (void)state;
    in_namespaces(places);
}

static void lookups(void)
{
    static const char *const servers[] = {"9.9.9.9", "127.0.0.1", "127.0.0.53", "2620:fe::fe",
                                          "::1"};
    int                      fd, v4, v6, by_stream, by_stream6;

    inside_redirect();
    v4 = bound(SOCK_DGRAM, "127.0.0.1", PORT_LOOKUPS);
    v6 = bound(SOCK_DGRAM, "::1", PORT_LOOKUPS);
    by_stream = listener("127.0.0.1", PORT_CONNECTIONS);
    by_stream6 = listener("::1", PORT_CONNECTIONS);
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        int           init = strchr(servers[i], ':') ? v6 : v4;
        union address from = {0};
        socklen_t     size = sizeof from;
        char          bytes[20];

        CHECK(sending(servers[i], 53, &fd) == 0);
        CHECK(recvfrom(init, bytes, sizeof bytes, 0, &from.any, &size) == 19);
        CHECK(sendto(init, "answer", 6, 0, &from.any, size) == 6);
        size = sizeof from;
        CHECK(recvfrom(fd, bytes, sizeof bytes, 0, &from.any, &size) == 6);
        address_check(&from, servers[i], 53); /* a resolver takes it from nobody else */

        CHECK(connecting(servers[i], 53, &fd) == 0);
        check_original(accept(strchr(servers[i], ':') ? by_stream6 : by_stream, NULL, NULL),
                       servers[i], 53);
    }
}

static void lookups_are_redirected(void **state)
{
    (void)state;
    in_namespaces(lookups);
}

static void others(void)
{
    static const char *const hosts[] = {"9.9.9.9", "224.0.0.251", "10.1.2.3", "2620:fe::fe",
                                        "fd00::1"};
    int                      fd;

    inside_redirect();
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        CHECK(sending(hosts[i], 54, &fd) == EPERM);
        CHECK(sending(hosts[i], 443, &fd) == EPERM);
    }
    CHECK(sending("255.255.255.255", 54, &fd) == EACCES); /* SO_BROADCAST is not set */
    /* echo requests: only for the groups of ping_group_range, of which a new namespace has none */
    CHECK(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) < 0 && errno == EACCES);
    CHECK(socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6) < 0 && errno == EACCES);
}

static void all_else_fails_at_once(void **state)
{
    (void)state;
    in_namespaces(others);
}

static void twice(void)
{
    struct err e = {0};

    inside_redirect();
    CHECK(redirect_to_init(NULL, 0, &e) < 0 && strstr(e.msg, "route every address to lo"));
}

static void a_second_time_is_an_error(void **state)
{
    (void)state;
    in_namespaces(twice);
}

/* A kernel that lacks something, as far as socket(2) tells. */
static void refuse_sockets(unsigned argument, unsigned value, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void no_ipv6(void)
{
    int fd, init;

    refuse_sockets(0, AF_INET6, EAFNOSUPPORT);
    inside_redirect();
    init = listener("127.0.0.1", PORT_CONNECTIONS);
    CHECK(connecting("93.184.215.14", 443, &fd) == 0);
    check_original(accept(init, NULL, NULL), "93.184.215.14", 443);
}

static void a_kernel_without_ipv6_will_do(void **state)
{
    (void)state;
    in_namespaces(no_ipv6);
}

static void no_netfilter(void)
{
    struct err e = {0};

    refuse_sockets(2, NETLINK_NETFILTER, EPROTONOSUPPORT);
    CHECK(redirect_to_init(NULL, 0, &e) < 0 && strstr(e.msg, "load the modules nf_tables"));
}

static void a_kernel_without_nf_tables_is_told(void **state)
{
    (void)state;
    in_namespaces(no_netfilter);
}

static void without_rights(void)
{
    struct err e = {0};

    CHECK(unshare(CLONE_NEWUSER) == 0); /* the network belongs to the outer namespace */
    CHECK(redirect_to_init(NULL, 0, &e) < 0 && e.sys == EPERM);
}

static void it_needs_the_right_to_it(void **state)
{
    (void)state;
    in_namespaces(without_rights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_is_redirected),
        cmocka_unit_test(loopback_stays_as_it_is),
        cmocka_unit_test(places_of_the_host_are_redirected),
        cmocka_unit_test(lookups_are_redirected),
        cmocka_unit_test(all_else_fails_at_once),
        cmocka_unit_test(a_second_time_is_an_error),
        cmocka_unit_test(it_needs_the_right_to_it),
        cmocka_unit_test(a_kernel_without_ipv6_will_do),
        cmocka_unit_test(a_kernel_without_nf_tables_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
