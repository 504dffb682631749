/* downloads - what lies in downloads/ (fetch/download.h) and certificates/ (deps/bundle.h) for too
 * long. Who uses a file holds its lock, and it stays. */
#pragma once

void downloads_sweep(void);    /* beginnings that nobody asked for since yesterday */
void downloads_drop_old(void); /* whole tarballs, too, and certificates */
