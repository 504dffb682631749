#include "base/fields.h"

#include <string.h>

static bool is_string(const json_t *j)
{
    return json_is_string(j);
}

/* A JSON Schema's integer is any number without a fraction. Past 2^53 a real has none, and may not
 * be the number that was meant. */
static bool is_int(const json_t *j)
{
    static const double exact_max = 9007199254740992.0;
    double              value = json_real_value(j);

    if (!json_is_real(j))
        return json_is_integer(j);
    return value >= -exact_max && value <= exact_max && value == (double)(int64_t)value;
}

static int64_t int_of(const json_t *j)
{
    return json_is_real(j) ? (int64_t)json_real_value(j) : json_integer_value(j);
}

static bool is_bool(const json_t *j)
{
    return json_is_boolean(j);
}

static bool is_list(const json_t *j)
{
    return json_is_array(j);
}

static bool is_object(const json_t *j)
{
    return json_is_object(j);
}

static const struct {
    const char *name;
    bool (*is)(const json_t *);
} types[] = {
    [FIELD_STRING] = {"a string", is_string}, [FIELD_BYTES] = {"a string", is_string},
    [FIELD_INT] = {"a whole number", is_int}, [FIELD_BOOL] = {"true or false", is_bool},
    [FIELD_LIST] = {"a list", is_list},       [FIELD_OBJECT] = {"an object", is_object},
};

/* jansson holds nothing but UTF-8: each character has one byte that does not continue another. */
static int64_t count_characters(const json_t *string)
{
    const char *text = json_string_value(string);
    int64_t     n = 0;

    for (size_t i = 0, size = json_string_length(string); i < size; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static int64_t measure(const struct field *f, const json_t *value)
{
    switch (f->type) {
    case FIELD_STRING:
        return count_characters(value);
    case FIELD_BYTES:
        return (int64_t)json_string_length(value);
    case FIELD_INT:
        return int_of(value);
    case FIELD_LIST:
        return (int64_t)json_array_size(value);
    default:
        return f->min;
    }
}

static void store(const struct field *f, const json_t *value, void *target)
{
    void *at = (char *)target + f->offset;

    switch (f->type) {
    case FIELD_STRING:
    case FIELD_BYTES:
        *(const char **)at = json_string_value(value);
        break;
    case FIELD_INT:
        *(int64_t *)at = int_of(value);
        break;
    case FIELD_BOOL:
        *(bool *)at = json_is_true(value);
        break;
    case FIELD_LIST:
    case FIELD_OBJECT:
        *(const json_t **)at = value;
        break;
    }
}

static int decode_one(const struct field *f, const json_t *value, const char *path, void *target,
                      struct err *e)
{
    static const char *const counted[] = {
        [FIELD_STRING] = " characters",
        [FIELD_BYTES] = " bytes",
        [FIELD_INT] = "",
        [FIELD_BOOL] = "",
        [FIELD_LIST] = " entries",
        [FIELD_OBJECT] = "",
    };
    int64_t n;

    if (!value || json_is_null(value)) {
        if (f->required)
            return err_set(e, ERR_INVALID, "%s.%s is missing", path, f->name);
        return 0;
    }
    if (!types[f->type].is(value))
        return err_set(e, ERR_INVALID, "%s.%s must be %s", path, f->name, types[f->type].name);
    n = measure(f, value);
    if (n < f->min || n > f->max)
        return err_set(e, ERR_INVALID, "%s.%s must be from %lld to %lld%s", path, f->name,
                       (long long)f->min, (long long)f->max, counted[f->type]);
    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value))
        return err_set(e, ERR_INVALID, "%s.%s must not contain a NUL byte", path, f->name);
    if (target)
        store(f, value, target);
    return 0;
}

static bool known(const struct field *rows, const char *name)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return true;
    return false;
}

int fields_decode(const struct field *rows, const json_t *object, const char *path, void *target,
                  struct err *e)
{
    const char *name;
    json_t     *value;

    if (!json_is_object(object))
        return err_set(e, ERR_INVALID, "%s must be an object", path);
    json_object_foreach ((json_t *)object, name, value)
        if (!known(rows, name))
            return err_set(e, ERR_INVALID, "%s has no member '%.60s'", path, name);
    for (const struct field *f = rows; f->name; f++)
        TRY(decode_one(f, json_object_get(object, f->name), path, target, e));
    return 0;
}

int fields_check(const struct field *rows, const json_t *object, const char *path, struct err *e)
{
    return fields_decode(rows, object, path, NULL, e);
}

/* ---- the schema ---- */

static json_t *schema_of(const struct field *f)
{
    static const struct {
        const char *type, *min, *max;
    } words[] = {
        [FIELD_STRING] = {"string", "minLength", "maxLength"},
        [FIELD_BYTES] = {"string", NULL, NULL},
        [FIELD_INT] = {"integer", "minimum", "maximum"},
        [FIELD_BOOL] = {"boolean", NULL, NULL},
        [FIELD_LIST] = {"array", "minItems", "maxItems"},
        [FIELD_OBJECT] = {"object", NULL, NULL},
    };
    json_t *schema =
        json_pack("{s:s, s:s*}", "type", words[f->type].type, "description", f->description);

    if (words[f->type].min && (f->min != 0 || f->type == FIELD_INT))
        json_object_set_new(schema, words[f->type].min, json_integer(f->min));
    if (words[f->type].max)
        json_object_set_new(schema, words[f->type].max, json_integer(f->max));
    if (f->schema) {
        autojson json_t *more = json_loads(f->schema, 0, NULL);
        json_object_update(schema, more);
    }
    if (json_object_get(schema, "enum") && words[f->type].min) { /* which says more than bounds */
        json_object_del(schema, words[f->type].min);
        json_object_del(schema, words[f->type].max);
    }
    return schema;
}

json_t *fields_schema(const struct field *rows)
{
    json_t *properties = json_object(), *required = json_array();

    for (const struct field *f = rows; f->name; f++) {
        json_object_set_new(properties, f->name, schema_of(f));
        if (f->required)
            json_array_append_new(required, json_string(f->name));
    }
    if (json_array_size(required) == 0) {
        json_decref(required);
        required = NULL;
    }
    return json_pack("{s:s, s:o, s:o*, s:b}", "type", "object", "properties", properties,
                     "required", required, "additionalProperties", 0);
}
