#include "npm/http.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/str.h"
#include "config.h"

enum { CONNECT_S = 10, STALL_S = 30, STALL_BYTES_PER_S = 100, REDIRECTS = 5 };

struct http {
    CURL *curl;
    char  sentence[CURL_ERROR_SIZE]; /* curl's own, for the error it returned */
};

struct transfer {
    CURL                      *curl;
    const struct http_request *request;
    int64_t                    bytes;
    struct err                *err; /* set when `take` or the maximum ended it */
};

struct http *http_new(const char *cafile)
{
    struct http *h = calloc(1, sizeof *h);

    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || !(h->curl = curl_easy_init()))
        abort();
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->sentence);
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "jerboa/" JERBOA_VERSION);
    curl_easy_setopt(h->curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(h->curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(h->curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_PER_S);
    if (*cafile)
        curl_easy_setopt(h->curl, CURLOPT_CAINFO, cafile);
    return h;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->curl);
    curl_global_cleanup();
    free(h);
}

static size_t on_data(char *data, size_t one, size_t size, void *owner)
{
    struct transfer *t = owner;
    curl_off_t       total = -1;

    (void)one;
    t->bytes += (int64_t)size;
    if (t->bytes > t->request->max_bytes) {
        err_set(t->err, ERR_LIMIT, "longer than %lld MiB",
                (long long)(t->request->max_bytes >> 20));
        return 0;
    }
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
    if (t->request->take(t->request->owner, data, size, total, t->err) < 0)
        return 0;
    return size;
}

static int status_error(long status, struct err *e)
{
    if (status == 404)
        return err_set(e, ERR_NOT_FOUND, "the registry does not have it (HTTP status 404)");
    if (status == 429 || status >= 500)
        return err_set(e, ERR_UNAVAILABLE, "the registry cannot answer now (HTTP status %ld)",
                       status);
    return err_set(e, ERR_INVALID, "the registry refuses it (HTTP status %ld)", status);
}

static int transfer_error(struct http *h, CURLcode code, struct err *e)
{
    const char *why = *h->sentence ? h->sentence : curl_easy_strerror(code);
    long        status = 0;

    switch (code) {
    case CURLE_WRITE_ERROR: /* ours: e is set */
        return -1;
    case CURLE_HTTP_RETURNED_ERROR:
        curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
        return status_error(status, e);
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(e, ERR_UNAVAILABLE, "the registry cannot be reached: %s", why);
    default: /* certificates, redirects, encodings: something is wrong, not absent */
        return err_set(e, ERR_INVALID, "the registry cannot be used: %s", why);
    }
}

int http_get(struct http *h, const struct http_request *r, struct err *e)
{
    struct transfer    t = {.curl = h->curl, .request = r, .err = e};
    bool               tls = str_starts(r->url, "https:");
    struct curl_slist *headers = NULL;
    CURLcode           code;

    if (r->accept) {
        autofree char *line = str_format("Accept: %s", r->accept);
        headers = curl_slist_append(NULL, line);
    }
    *h->sentence = '\0';
    curl_easy_setopt(h->curl, CURLOPT_URL, r->url);
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h->curl, CURLOPT_REDIR_PROTOCOLS_STR, tls ? "https" : "http,https");
    curl_easy_setopt(h->curl, CURLOPT_ACCEPT_ENCODING, r->accept ? "" : NULL);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &t);
    code = curl_easy_perform(h->curl);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return code == CURLE_OK ? 0 : transfer_error(h, code, e);
}
