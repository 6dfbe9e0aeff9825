/* Waits for a tick, and never gives up. */
int main(void)
{
	unsigned long start = jiffies();
	while (jiffies() == start)
		;
	return 0;
}
