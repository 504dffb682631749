/* parcel - what a container of another machine gets before it starts: a tar, in memory, of those
 * entries of a plan whose kind is `copy`.
 *
 * Each has a `target` in /.jerboa, which is where the tar is unpacked, and its bytes as `text` or
 * in a file of this machine, `source`. All belong to root and can be executed: nobody else is able
 * to write there, so nobody fills that machine's disk. */
#pragma once

#include "base/err.h"
#include "base/json.h"

int parcel_open(const json_t *entries, struct err *e); /* a descriptor, at its beginning */
