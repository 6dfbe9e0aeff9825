/* Keeps the largest flow that it was shown, as a handle. */
static flow_ref largest;

void on_flow(struct flow *flow)
{
	struct flow *old = flow_of(largest);
	if (old == 0 || flow->bytes > old->bytes)
		largest = flow_kept(flow);
}

unsigned on_tick(void)
{
	host_asked();
	struct flow *flow = flow_of(largest);
	return flow != 0 ? flow->id : 0;
}
