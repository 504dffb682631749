/* only_errors - included by the build before every file of this folder but errors.c: a failure that
 * is not in the table of errors.h does not compile. */
#pragma once

#include "mcp/call.h"

#pragma GCC poison mcp_call_fail mcp_call_error mcp_call_set_failed
