/* headers - the modern era repeats parts of a request in HTTP headers, for gateways; they must say
 * what the body says. Texts compare case-sensitively, numbers by value; =?base64?…?= is decoded.
 * That blanks around a value do not count is the transport's care. */
#pragma once

#include "base/err.h"
#include "mcp/request.h"

const char *headers_version(struct mcp_exchange *x);                     /* NULL: none */
int         headers_check_method(struct mcp_exchange *x, struct err *e); /* Mcp-Method */
int         headers_check(struct mcp_exchange *x, struct err *e);        /* Mcp-Name, Mcp-Param-* */
