// levels: sm_75
// The bfloat16 kernels of broadcast.cu.
#define ELEMENT WwBfloat
#define DTYPE bf16
#include "broadcast.cu"
