/* room - whether there may be one more sandbox, and if not, what would have to change.
 *
 * It only looks. Who waits for room asks again when the ops of the table say that there may be some
 * (boxes_ops.room). */
#pragma once

#include "box/box.h"

enum room {
    ROOM_IS,     /* one more may be made */
    ROOM_ALL,    /* there are as many as there may be: somebody's has to end */
    ROOM_OWN,    /* the owner has as many as he may: one of his has to, and one will by itself */
    ROOM_MEMORY, /* there is too little memory for one more */
    ROOM_STAYS,  /* he has as many as he may, or all there are, and none will: he has to stop one */
};

enum room room_for(struct boxes *all, const char *owner); /* as mcp_call_owner has it */
enum room room_for_anybody(struct boxes *all); /* ROOM_ALL, ROOM_MEMORY: none, whoever asks */
size_t    room_used(const struct boxes *all);
size_t    room_used_by(const struct boxes *all, const char *owner);
int64_t   room_memory(struct boxes *all); /* bytes that are left */
