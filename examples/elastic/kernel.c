/* The environment of the course in kernel programming: a counter of ticks. */
#include <time.h>

unsigned long jiffies(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long)now.tv_sec * 100 + (unsigned long)now.tv_nsec / 10000000;
}

int main(void);
