// The node operations of std::map and std::set: a red-black tree. The header
// node is above the root: its parent is the root, its left the first node, its
// right the last one; it is red, which tells it from a root.
#include <map>

namespace std {

namespace {

typedef _Rb_tree_node_base Node;

template <typename Pointer>
Pointer successor(Pointer node)
{
	if (node->_M_right) {
		for (node = node->_M_right; node->_M_left; node = node->_M_left)
			;
		return node;
	}
	Pointer above = node->_M_parent;
	while (node == above->_M_right) {
		node = above;
		above = above->_M_parent;
	}
	// The successor of the last node is the header, also if that node is the root.
	return node->_M_right != above ? above : node;
}

template <typename Pointer>
Pointer predecessor(Pointer node)
{
	if (node->_M_color == _S_red && node->_M_parent->_M_parent == node)
		return node->_M_right;
	if (node->_M_left) {
		for (node = node->_M_left; node->_M_right; node = node->_M_right)
			;
		return node;
	}
	Pointer above = node->_M_parent;
	while (node == above->_M_left) {
		node = above;
		above = above->_M_parent;
	}
	return above;
}

// Hangs `to` where `from` is.
void hang(Node *from, Node *to, Node *&root)
{
	Node *above = from->_M_parent;
	if (from == root)
		root = to;
	else if (from == above->_M_left)
		above->_M_left = to;
	else
		above->_M_right = to;
	if (to)
		to->_M_parent = above;
}

void rotate_left(Node *node, Node *&root)
{
	Node *child = node->_M_right;
	node->_M_right = child->_M_left;
	if (child->_M_left)
		child->_M_left->_M_parent = node;
	hang(node, child, root);
	child->_M_left = node;
	node->_M_parent = child;
}

void rotate_right(Node *node, Node *&root)
{
	Node *child = node->_M_left;
	node->_M_left = child->_M_right;
	if (child->_M_right)
		child->_M_right->_M_parent = node;
	hang(node, child, root);
	child->_M_right = node;
	node->_M_parent = child;
}

bool black(const Node *node) { return !node || node->_M_color == _S_black; }

// `node`, a child of `above`, is one black node short on its paths.
void repair(Node *node, Node *above, Node *&root)
{
	while (node != root && black(node)) {
		bool left = node == above->_M_left;
		Node *sibling = left ? above->_M_right : above->_M_left;
		if (sibling->_M_color == _S_red) {
			sibling->_M_color = _S_black;
			above->_M_color = _S_red;
			left ? rotate_left(above, root) : rotate_right(above, root);
			sibling = left ? above->_M_right : above->_M_left;
		}
		if (black(sibling->_M_left) && black(sibling->_M_right)) {
			sibling->_M_color = _S_red;
			node = above;
			above = above->_M_parent;
			continue;
		}
		if (black(left ? sibling->_M_right : sibling->_M_left)) {
			(left ? sibling->_M_left : sibling->_M_right)->_M_color = _S_black;
			sibling->_M_color = _S_red;
			left ? rotate_right(sibling, root) : rotate_left(sibling, root);
			sibling = left ? above->_M_right : above->_M_left;
		}
		sibling->_M_color = above->_M_color;
		above->_M_color = _S_black;
		(left ? sibling->_M_right : sibling->_M_left)->_M_color = _S_black;
		left ? rotate_left(above, root) : rotate_right(above, root);
		break;
	}
	if (node)
		node->_M_color = _S_black;
}

} // namespace

Node *_Rb_tree_increment(Node *node) throw() { return successor(node); }
const Node *_Rb_tree_increment(const Node *node) throw() { return successor(node); }
Node *_Rb_tree_decrement(Node *node) throw() { return predecessor(node); }
const Node *_Rb_tree_decrement(const Node *node) throw() { return predecessor(node); }

void _Rb_tree_insert_and_rebalance(const bool left, Node *node, Node *above, Node &header) throw()
{
	Node *&root = header._M_parent;
	node->_M_parent = above;
	node->_M_left = node->_M_right = nullptr;
	node->_M_color = _S_red;
	if (left) {
		above->_M_left = node;
		if (above == &header) {
			header._M_parent = header._M_right = node;
		} else if (above == header._M_left) {
			header._M_left = node;
		}
	} else {
		above->_M_right = node;
		if (above == header._M_right)
			header._M_right = node;
	}
	while (node != root && node->_M_parent->_M_color == _S_red) {
		Node *parent = node->_M_parent, *grand = parent->_M_parent;
		bool outer_left = parent == grand->_M_left;
		Node *uncle = outer_left ? grand->_M_right : grand->_M_left;
		if (!black(uncle)) {
			parent->_M_color = uncle->_M_color = _S_black;
			grand->_M_color = _S_red;
			node = grand;
			continue;
		}
		if (node == (outer_left ? parent->_M_right : parent->_M_left)) {
			outer_left ? rotate_left(parent, root) : rotate_right(parent, root);
			parent = node;
		}
		parent->_M_color = _S_black;
		grand->_M_color = _S_red;
		outer_left ? rotate_right(grand, root) : rotate_left(grand, root);
		break;
	}
	root->_M_color = _S_black;
}

Node *_Rb_tree_rebalance_for_erase(Node *const gone, Node &header) throw()
{
	Node *&root = header._M_parent;
	_Rb_tree_color removed = gone->_M_color;
	Node *child, *above;
	if (gone->_M_left && gone->_M_right) {
		// The successor, which has no left child, takes the place and the colour.
		Node *heir = gone->_M_right;
		while (heir->_M_left)
			heir = heir->_M_left;
		child = heir->_M_right;
		above = heir->_M_parent;
		if (above == gone) {
			above = heir;
		} else {
			hang(heir, child, root);
			heir->_M_right = gone->_M_right;
			heir->_M_right->_M_parent = heir;
		}
		hang(gone, heir, root);
		heir->_M_left = gone->_M_left;
		heir->_M_left->_M_parent = heir;
		removed = heir->_M_color;
		heir->_M_color = gone->_M_color;
		gone->_M_color = removed;
	} else {
		child = gone->_M_left ? gone->_M_left : gone->_M_right;
		above = gone->_M_parent;
		if (header._M_left == gone)
			header._M_left = gone->_M_right ? successor(gone) : above;
		if (header._M_right == gone)
			header._M_right = gone->_M_left ? predecessor(gone) : above;
		hang(gone, child, root);
	}
	if (removed == _S_black)
		repair(child, above, root);
	return gone;
}

unsigned int _Rb_tree_black_count(const Node *node, const Node *root) throw()
{
	unsigned int count = 0;
	for (; node; node = node->_M_parent) {
		count += node->_M_color == _S_black;
		if (node == root)
			break;
	}
	return count;
}

} // namespace std
