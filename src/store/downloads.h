/* downloads - what lies in downloads/ for too long (fetch/download.h tells what lies there). */
#pragma once

void downloads_sweep(void);    /* beginnings that nobody asked for since yesterday */
void downloads_drop_old(void); /* whole tarballs, too */
