/* mime - the media type of a file: by its name, and by its first bytes where these are there.
 *
 * Images are what their bytes say, whatever they are called: a client shows them. A name that
 * promises an image which the bytes are not is not believed; nor is one that promises text. Pure;
 * the answer is a constant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIME_HEAD = 512 }; /* as many of the first bytes as are of use */

/* `head` NULL: by the name alone. */
const char *mime_of(const char *path, const uint8_t *head, size_t size);
bool        mime_is_image(const char *type); /* one that clients show: PNG, JPEG, GIF, WebP */
bool        mime_is_text(const char *type);  /* people read it as text */
