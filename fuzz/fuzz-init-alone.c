/* fuzz-init-alone - fuzz-init.c, as the init of a container. */
#define ALONE
#include "fuzz-init.c"
