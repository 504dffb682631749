#include "npm/http.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "config.h"

enum { CONNECT_S = 10, STALL_S = 30, STALL_BYTES_PER_S = 100, REDIRECTS = 5, SHOWN_MAX = 120 };

struct http {
    const struct npm_config *config;
    CURL                    *curl;
    char                     sentence[CURL_ERROR_SIZE]; /* curl's own, for the error it returned */
};

struct transfer {
    CURL                      *curl;
    const struct http_request *request;
    int64_t                    at; /* in the whole; -1 before the first byte */
    bool                       authorized;
    struct err                *err; /* set when we ended it ourselves */
};

static void set_trust(struct http *h)
{
    struct npm_trust trust = npm_config_trust(h->config);
    struct curl_blob blob = {.flags = CURL_BLOB_COPY};

    if (trust.any) {
        curl_easy_setopt(h->curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(h->curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!trust.cafile && !trust.ca)
        return;
    curl_easy_setopt(h->curl, CURLOPT_CAPATH, NULL); /* these and no others, as npm */
    if (trust.cafile)
        curl_easy_setopt(h->curl, CURLOPT_CAINFO, trust.cafile);
    else {
        blob.data = (void *)trust.ca;
        blob.len = strlen(trust.ca);
        curl_easy_setopt(h->curl, CURLOPT_CAINFO_BLOB, &blob);
    }
}

struct http *http_new(const struct npm_config *config)
{
    struct http *h = calloc(1, sizeof *h);

    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || !(h->curl = curl_easy_init()))
        abort();
    h->config = config;
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->sentence);
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "jerboa/" JERBOA_VERSION);
    curl_easy_setopt(h->curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES_PER_S);
    set_trust(h);
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

/* ---- the answer ---- */

static long status_of(CURL *curl)
{
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* "bytes 100-199/200" begins where we asked, or it is of no use. */
static int begin_part(struct transfer *t)
{
    struct curl_header *header;
    long long           from = -1;

    if (curl_easy_header(t->curl, "Content-Range", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        sscanf(header->value, "bytes %lld-", &from) != 1 || from != t->request->from)
        return err_set(t->err, ERR_INVALID, "the registry sends another part than was asked for");
    t->at = t->request->from;
    return 0;
}

static int begin(struct transfer *t)
{
    t->at = 0;
    if (status_of(t->curl) == 206)
        TRY(begin_part(t));
    return t->request->begin ? t->request->begin(t->request->owner, t->at, t->err) : 0;
}

static int take(struct transfer *t, const char *data, size_t size)
{
    curl_off_t length = -1;

    if (t->at < 0)
        TRY(begin(t));
    if (t->at > t->request->max_bytes - (int64_t)size)
        return err_set(t->err, ERR_LIMIT, "longer than %lld MiB",
                       (long long)(t->request->max_bytes >> 20));
    t->at += (int64_t)size;
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length >= 0 && status_of(t->curl) == 206)
        length += t->request->from;
    return t->request->take(t->request->owner, data, size, length, t->err);
}

static size_t on_data(char *data, size_t one, size_t size, void *owner)
{
    struct transfer *t = owner;

    (void)one;
    if (status_of(t->curl) / 100 == 3) /* what a redirect has to say */
        return size;
    return take(t, data, size) < 0 ? 0 : size;
}

/* ---- errors ---- */

/* The proxy's own answer to CONNECT. */
static int proxy_error(long status, struct err *e)
{
    if (status == 407)
        return err_set(e, ERR_INVALID,
                       "the proxy wants other credentials than the configured address has (HTTP "
                       "status 407)");
    if (status == 429 || status >= 500)
        return err_set(e, ERR_UNAVAILABLE,
                       "the proxy cannot reach the registry now (HTTP status %ld)", status);
    return err_set(e, ERR_INVALID, "the proxy refuses to connect to the registry (HTTP status %ld)",
                   status);
}

static int credentials_error(const struct http *h, const struct transfer *t, const struct url *url,
                             long status, struct err *e)
{
    struct url origin = *url;
    char       shown[SHOWN_MAX], unset[SHOWN_MAX];

    str_copy(origin.path, sizeof origin.path, "/");
    url_show(&origin, shown, sizeof shown);
    if (t->authorized)
        return err_set(e, ERR_INVALID,
                       "the registry %s refuses the credentials that npm's configuration has for "
                       "it (HTTP status %ld)",
                       shown, status);
    if (npm_config_unset_variable(h->config, url, unset, sizeof unset))
        return err_set(e, ERR_INVALID,
                       "the registry %s wants credentials (HTTP status %ld): those configured "
                       "hold ${%.60s}, and that variable is not set",
                       shown, status, unset);
    return err_set(e, ERR_INVALID,
                   "the registry %s wants credentials (HTTP status %ld): set "
                   "//%.80s/:_authToken in your .npmrc",
                   shown, status, url->host);
}

static int status_error(const struct http *h, const struct transfer *t, const struct url *url,
                        struct err *e)
{
    long status = status_of(t->curl), proxy_status = 0;

    curl_easy_getinfo(t->curl, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    if (status == 0 && proxy_status != 0)
        return proxy_error(proxy_status, e);
    if (status == 404 || status == 405 || status == 410 || status == 501) /* nor will it later */
        return err_set(e, ERR_NOT_FOUND, "the registry does not have it (HTTP status %ld)", status);
    if (status == 429 || status >= 500)
        return err_set(e, ERR_UNAVAILABLE, "the registry cannot answer now (HTTP status %ld)",
                       status);
    if (status == 401 || status == 403)
        return credentials_error(h, t, url, status, e);
    return err_set(e, ERR_INVALID, "the registry refuses it (HTTP status %ld)", status);
}

/* curl's own sentence, unless it quotes an address with a password. */
static const char *reason(const struct http *h, CURLcode code)
{
    return *h->sentence && !strchr(h->sentence, '@') ? h->sentence : curl_easy_strerror(code);
}

static int transfer_error(struct http *h, CURLcode code, struct err *e)
{
    const char *why = reason(h, code);

    if (str_starts(h->sentence, "Unsupported proxy")) /* under codes that mean absence, too */
        return err_set(e, ERR_INVALID,
                       "the configured proxy is no address of one: write "
                       "http://[USER:PASSWORD@]HOST[:PORT] into https-proxy of your .npmrc, or "
                       "https_proxy");
    switch (code) {
    case CURLE_WRITE_ERROR: /* ours: e is set */
        return -1;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(e, ERR_UNAVAILABLE, "the registry cannot be reached: %s", why);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(e, ERR_INVALID,
                       "the registry cannot be trusted: %s (npm's setting cafile names the "
                       "certificates to trust)",
                       why);
    default: /* proxies, encodings: something is wrong, not absent */
        return err_set(e, ERR_INVALID, "the registry cannot be used: %s", why);
    }
}

/* ---- the request ---- */

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
    autofree char     *line = str_format("%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(list, line);

    if (!longer)
        abort();
    return longer;
}

static void set_proxy(struct http *h, const struct url *url)
{
    const char *proxy = npm_config_proxy(h->config, url);

    curl_easy_setopt(h->curl, CURLOPT_PROXY, proxy ? proxy : ""); /* "": not what curl finds */
    curl_easy_setopt(h->curl, CURLOPT_NOPROXY, npm_config_get(h->config, "noproxy"));
}

/* One hop. *ret_next is where it leads, or NULL when it was the last; the caller frees it. */
static int hop(struct http *h, struct transfer *t, const char *address, const struct url *url,
               const char *authorization, char **ret_next, struct err *e)
{
    struct curl_slist *headers = NULL;
    char               range[32], *next = NULL;
    CURLcode           code;

    if (t->request->accept)
        headers = add_header(headers, "Accept", t->request->accept);
    if (authorization)
        headers = add_header(headers, "Authorization", authorization);
    snprintf(range, sizeof range, "%lld-", (long long)t->request->from);
    *h->sentence = '\0';
    set_proxy(h, url);
    t->authorized = authorization;
    curl_easy_setopt(h->curl, CURLOPT_URL, address);
    curl_easy_setopt(h->curl, CURLOPT_RANGE, t->request->from > 0 ? range : NULL);
    curl_easy_setopt(h->curl, CURLOPT_ACCEPT_ENCODING, t->request->accept ? "" : NULL);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, t);
    code = curl_easy_perform(h->curl);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    if (code == CURLE_HTTP_RETURNED_ERROR)
        return status_error(h, t, url, e);
    if (code != CURLE_OK)
        return transfer_error(h, code, e);
    curl_easy_getinfo(h->curl, CURLINFO_REDIRECT_URL, &next);
    *ret_next = next ? strdup(next) : NULL;
    return 0;
}

static int refuse_redirect(const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID, "the registry cannot be used: %s", why);
}

int http_get(struct http *h, const struct http_request *r, struct err *e)
{
    struct transfer t = {.curl = h->curl, .request = r, .at = -1, .err = e};
    autofree char  *address = strdup(r->url);
    struct url      first, url;
    bool at_home = true; /* once a redirect has left the origin, it is another's request */

    TRY(url_parse(address, &first, e));
    url = first;
    for (int hops = 0; hops <= REDIRECTS; hops++) {
        autofree char *authorization = NULL;
        char          *next = NULL;
        at_home = at_home && url_same_origin(&url, &first);
        if (at_home)
            TRY(npm_config_authorization(h->config, &url, &authorization, e));
        TRY(hop(h, &t, address, &url, authorization, &next, e));
        free(address);
        address = next;
        if (!next)
            return t.at < 0 && begin(&t) < 0 ? -1 : 0; /* an empty body begins, too */
        if (url_parse(next, &url, NULL) < 0 || (first.is_tls && !url.is_tls))
            return refuse_redirect(
                "it redirects to an address that is not http, or no longer https", e);
    }
    return refuse_redirect("it redirects without end", e);
}
