#include "walled_libxml2.h"
#include <libxml/c14n.h>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static xmlDocPtr document_now;

static void quiet(void *user, const char *format, ...)
{
	(void)user, (void)format;
}

int32_t take(const uint8_t *document, uint64_t length)
{
	xmlErrorPtr error;
	xmlSetGenericErrorFunc(NULL, quiet);
	xmlFreeDoc(document_now);
	document_now = NULL;
	if (length <= INT_MAX)
		document_now = xmlReadMemory((const char *)document, (int)length, NULL, NULL, XML_PARSE_NONET);
	if (document_now)
		return 0;
	error = xmlGetLastError();
	return error && error->line > 0 ? error->line : 1;
}

/* Hands a text out. */
static int64_t hand(const xmlChar *text, uint64_t length, char *room, uint64_t size)
{
	if (length > size)
		return -2;
	memcpy(room, text, length);
	return (int64_t)length;
}

/* One line for each node. */
static int64_t hand_nodes(const xmlNodeSet *nodes, char *room, uint64_t size)
{
	int64_t written = 0;
	for (int i = 0; nodes && i < nodes->nodeNr; i++) {
		xmlChar *text = xmlXPathCastNodeToString(nodes->nodeTab[i]);
		int64_t more = text ? hand(text, strlen((const char *)text), room + written, size - written) : 0;
		xmlFree(text);
		if (more < 0 || written + more == (int64_t)size)
			return -2;
		written += more;
		room[written++] = '\n';
	}
	return written;
}

int64_t ask(const char *path, char *room, uint64_t size)
{
	xmlXPathContextPtr context = document_now ? xmlXPathNewContext(document_now) : NULL;
	xmlXPathObjectPtr found = context ? xmlXPathEvalExpression((const xmlChar *)path, context) : NULL;
	int64_t written = -1;
	if (found && found->type == XPATH_NODESET) {
		written = hand_nodes(found->nodesetval, room, size);
	} else if (found) {
		xmlChar *text = xmlXPathCastToString(found);
		written = text ? hand(text, strlen((const char *)text), room, size) : -1;
		xmlFree(text);
	}
	xmlXPathFreeObject(found);
	xmlXPathFreeContext(context);
	return written;
}

int64_t canonical(char *room, uint64_t size)
{
	xmlChar *text = NULL;
	int length = document_now ? xmlC14NDocDumpMemory(document_now, NULL, XML_C14N_1_0, NULL, 1, &text) : -1;
	int64_t written = length < 0 ? -1 : hand(text, length, room, size);
	xmlFree(text);
	return written;
}

uint64_t explain(char *room, uint64_t size)
{
	xmlErrorPtr error = xmlGetLastError();
	const char *said = error && error->message ? error->message : "";
	return snprintf(room, size, "%.*s", (int)strcspn(said, "\n"), said);
}
