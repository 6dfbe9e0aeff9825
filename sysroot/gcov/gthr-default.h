#include "gthr-posix.h"
