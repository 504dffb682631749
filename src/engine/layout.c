#include "engine/layout.h"

const char layout_node[] = "/opt/node/bin/node";
const char layout_gate[] = "/.jerboa/gate.cjs";
const char layout_workspace[] = "/workspace";
const char layout_modules[] = "/workspace/node_modules";
