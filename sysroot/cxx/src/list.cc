// The node operations of std::list: a circular, doubly linked list whose head
// is a node without a value.
#include <list>

namespace std {
namespace __detail {

void _List_node_base::_M_hook(_List_node_base *const position) noexcept
{
	_M_next = position;
	_M_prev = position->_M_prev;
	position->_M_prev->_M_next = this;
	position->_M_prev = this;
}

void _List_node_base::_M_unhook() noexcept
{
	_M_prev->_M_next = _M_next;
	_M_next->_M_prev = _M_prev;
}

// Moves [first, last) in front of this node.
void _List_node_base::_M_transfer(_List_node_base *const first, _List_node_base *const last) noexcept
{
	if (this == last || first == last)
		return;
	_List_node_base *tail = last->_M_prev;
	first->_M_prev->_M_next = last;
	last->_M_prev = first->_M_prev;
	_M_prev->_M_next = first;
	first->_M_prev = _M_prev;
	tail->_M_next = this;
	_M_prev = tail;
}

void _List_node_base::_M_reverse() noexcept
{
	_List_node_base *node = this;
	do {
		_List_node_base *next = node->_M_next;
		node->_M_next = node->_M_prev;
		node->_M_prev = next;
		node = next;
	} while (node != this);
}

void _List_node_base::swap(_List_node_base &x, _List_node_base &y) noexcept
{
	_List_node_base place;
	place._M_next = place._M_prev = &place;
	place._M_transfer(x._M_next, &x);
	x._M_transfer(y._M_next, &y);
	y._M_transfer(place._M_next, &place);
}

} // namespace __detail
} // namespace std
