/* run_id - which run of Jerboa made a container, for its label: 32 hex digits, the same as long as
 * this process lives. */
#pragma once

#include <stdint.h>

const char *run_id(void);
int64_t     run_id_now_ms(void); /* since 1970 */
