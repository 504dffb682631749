/* file_uri - how files are called as resources: file:///… below FILES_DIR, sandbox://ID/… in a
 * sandbox. Bytes that do not belong into a URI are percent-encoded. The caller frees. */
#pragma once

char *file_uri_on_host(const char *dir, const char *path);
char *file_uri_in_box(const char *box_id, const char *path); /* relative to /workspace */
/* Of /workspace/files/PATH: on the host when dir is one of its directories, else in the box. */
char *file_uri_of(const char *dir, const char *box_id, const char *path);

/* The path below `dir` that a file: URI means; NULL: it is none, or leads elsewhere. */
char *file_uri_below(const char *uri, const char *dir);
