#include "sandbox/mime.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "base/utf8.h"

static const char binary[] = "application/octet-stream";
static const char plain[] = "text/plain";

static const struct {
    const char *type;
    size_t      at;
    const char *bytes;
    size_t      size;
} marks[] = {
    {"image/png", 0, "\x89PNG\r\n\x1a\n", 8},
    {"image/jpeg", 0, "\xff\xd8\xff", 3},
    {"image/gif", 0, "GIF87a", 6},
    {"image/gif", 0, "GIF89a", 6},
    {"image/webp", 8, "WEBP", 4}, /* behind RIFF and a length */
};

static const struct {
    const char *suffix, *type;
} names[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/x-c"},
    {"cjs", "text/javascript"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"cts", "text/x-typescript"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ini", "text/plain"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"jsx", "text/javascript"},
    {"log", "text/plain"},
    {"map", "application/json"},
    {"md", "text/markdown"},
    {"mjs", "text/javascript"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mts", "text/x-typescript"},
    {"ndjson", "application/x-ndjson"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ogg", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"py", "text/x-python"},
    {"sh", "application/x-sh"},
    {"sql", "application/sql"},
    {"sqlite", "application/vnd.sqlite3"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tgz", "application/gzip"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "text/x-typescript"}, /* not MPEG: code is what is written here */
    {"tsv", "text/tab-separated-values"},
    {"tsx", "text/x-typescript"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

/* Besides text/…. */
static const char *const texts[] = {
    "application/json", "application/jsonl",    "application/sql",
    "application/toml", "application/x-sh",     "application/xml",
    "application/yaml", "application/x-ndjson", "image/svg+xml",
};

static const char *by_name(const char *path)
{
    const char *base = strrchr(path, '/'), *dot;

    base = base ? base + 1 : path;
    dot = strrchr(base, '.');
    if (!dot || dot == base)
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(dot + 1, names[i].suffix) == 0)
            return names[i].type;
    return NULL;
}

static const char *by_bytes(const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (size >= marks[i].at + marks[i].size &&
            memcmp(head + marks[i].at, marks[i].bytes, marks[i].size) == 0 &&
            (marks[i].at == 0 || memcmp(head, "RIFF", 4) == 0))
            return marks[i].type;
    return NULL;
}

/* UTF-8, with no control characters but those of text; a character cut by the end is fine. */
static bool looks_like_text(const uint8_t *head, size_t size)
{
    size -= utf8_cut_end(head, size);
    for (size_t i = 0; i < size; i++)
        if (head[i] < ' ' && (head[i] == 0 || !strchr("\t\n\v\f\r\b\033", head[i])))
            return false;
    return utf8_is_valid(head, size);
}

const char *mime_of(const char *path, const uint8_t *head, size_t size)
{
    const char *name = by_name(path), *seen;

    if (!head)
        return name ? name : binary;
    seen = by_bytes(head, size);
    if (seen)
        return seen;
    if (name && !mime_is_image(name) && !mime_is_text(name))
        return name;
    if (!looks_like_text(head, size))
        return binary;
    return name && mime_is_text(name) ? name : plain;
}

bool mime_is_image(const char *type)
{
    static const char *const images[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        if (strcmp(type, images[i]) == 0)
            return true;
    return false;
}

bool mime_is_text(const char *type)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(type, texts[i]) == 0)
            return true;
    return str_starts(type, "text/");
}
