/* clock - the time for measuring and waiting: it only goes forward, and starts anywhere. */
#pragma once

#include <stdint.h>

int64_t clock_ms(void);
int64_t clock_us(void);
