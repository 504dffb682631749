/* fields - one table a JSON object: decoded into a struct, checked, with errors that name the path.
 *
 * Decoded strings and lists are borrowed from the document: it must outlive the struct. Members
 * that the table does not know are refused. An optional member that is missing or null leaves its
 * field as it was, so that defaults stand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum field_type {
    FIELD_STRING, /* const char *; min and max count characters; no NUL inside */
    FIELD_BYTES,  /* the same, counted in bytes, which a schema cannot say */
    FIELD_INT,    /* int64_t; min and max bound it; 5.0 is a whole number, too */
    FIELD_BOOL,   /* bool */
    FIELD_LIST,   /* const json_t *; min and max count entries */
    FIELD_OBJECT, /* const json_t * */
};

struct field {
    const char     *name; /* the last row of a table has none */
    enum field_type type;
    size_t          offset;
    bool            required;
    int64_t         min, max;
    const char     *description;
    const char     *schema; /* further members of its JSON Schema as JSON text ("items"), or NULL */
};

/* The JSON Schema (2020-12) that says the same as the table. */
json_t *fields_schema(const struct field *rows);

/* `path` is how the object is called in errors, "plan" or "mounts[3]". */
int fields_decode(const struct field *rows, const json_t *object, const char *path, void *target,
                  struct err *e);
int fields_check(const struct field *rows, const json_t *object, const char *path, struct err *e);
