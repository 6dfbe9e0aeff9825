/* Looks at the clock twice. */
int main(void)
{
	unsigned long first = jiffies(), second = jiffies();
	return second >= first ? 0 : 1;
}
