/* layout - where things are inside a sandbox, whatever engine made it. */
#pragma once

extern const char layout_node[];      /* the program */
extern const char layout_gate[];      /* what a Node that is held loads first */
extern const char layout_workspace[]; /* where code is at home */
extern const char layout_modules[];   /* where a layer belongs */
