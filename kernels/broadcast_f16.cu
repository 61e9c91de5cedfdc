// levels: sm_75
// The float16 kernels of broadcast.cu.
#define ELEMENT WwHalf
#define DTYPE f16
#include "broadcast.cu"
