// levels: sm_75
// The bfloat16 kernels of elementwise.cu.
#define ELEMENT WwBfloat
#define DTYPE bf16
#include "elementwise.cu"
