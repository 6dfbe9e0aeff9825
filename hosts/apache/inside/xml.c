/* Functions of APR that follow trees of XML. As part of a module they take no gate, and follow a tree with the module's own rights:
 * one that another thread changes meanwhile, or that has no end, ends the module's call and nothing else. The headers show how trees
 * lie. The tree itself is a copy in the module's memory (`ap_xml_parse_input`). */
#include "httpd.h"
#include "apr_strings.h"
#include "apr_xml.h"

#define INSIDE __attribute__((visibility("hidden")))

INSIDE void apr_text_append(apr_pool_t *pool, apr_text_header *list, const char *text)
{
    apr_text *last = apr_palloc(pool, sizeof(*last));

    last->text = text;
    last->next = NULL;
    if (list->first == NULL)
        list->first = last;
    else
        list->last->next = last;
    list->last = last;
}

/* What stands for a character in text or, with quotes, in an attribute; or null. */
static const char *entity(char one, int quotes)
{
    switch (one) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return quotes ? "&quot;" : NULL;
    default:
        return NULL;
    }
}

INSIDE const char *apr_xml_quote_string(apr_pool_t *pool, const char *text, int quotes)
{
    apr_size_t more = 0;
    const char *at, *stands;
    char *made, *to;

    for (at = text; *at; at++)
        if ((stands = entity(*at, quotes)) != NULL)
            more += strlen(stands) - 1;
    if (more == 0)
        return text;
    to = made = apr_palloc(pool, at - text + more + 1);
    for (at = text; *at; at++) {
        if ((stands = entity(*at, quotes)) == NULL)
            *to++ = *at;
        else
            for (; *stands; stands++)
                *to++ = *stands;
    }
    *to = 0;
    return made;
}

INSIDE void apr_xml_quote_elem(apr_pool_t *pool, apr_xml_elem *elem)
{
    apr_xml_elem *child;
    apr_xml_attr *attribute;
    apr_text *text;

    for (text = elem->first_cdata.first; text != NULL; text = text->next)
        text->text = apr_xml_quote_string(pool, text->text, 0);
    for (text = elem->following_cdata.first; text != NULL; text = text->next)
        text->text = apr_xml_quote_string(pool, text->text, 0);
    for (attribute = elem->attr; attribute != NULL; attribute = attribute->next)
        attribute->value = apr_xml_quote_string(pool, attribute->value, 1);
    for (child = elem->first_child; child != NULL; child = child->next)
        apr_xml_quote_elem(pool, child);
}

INSIDE const char *apr_xml_empty_elem(apr_pool_t *pool, const apr_xml_elem *elem)
{
    if (elem->ns == APR_XML_NS_NONE)
        return apr_pstrcat(pool, "<", elem->name, "/>\r\n", NULL);
    return apr_psprintf(pool, "<ns%d:%s/>\r\n", elem->ns, elem->name);
}

/* Text that is made: counted first, and then written. */
struct made {
    char *to;
    apr_size_t bytes;
};

static void add_bytes(struct made *made, const char *text, apr_size_t bytes)
{
    if (made->to != NULL)
        memcpy(made->to + made->bytes, text, bytes);
    made->bytes += bytes;
}

static void add(struct made *made, const char *text)
{
    add_bytes(made, text, strlen(text));
}

/* `ns` with its number. */
static void add_space(struct made *made, int number)
{
    char digits[16], *at = digits + sizeof(digits);
    unsigned int left = number < 0 ? 0u - (unsigned int)number : (unsigned int)number;

    *--at = 0;
    do
        *--at = '0' + left % 10;
    while ((left /= 10) != 0);
    if (number < 0)
        *--at = '-';
    add(made, "ns");
    add(made, at);
}

static void add_name(struct made *made, const char *name, int space, const int *spaces)
{
    if (space != APR_XML_NS_NONE) {
        add_space(made, spaces != NULL ? spaces[space] : space);
        add(made, ":");
    }
    add(made, name);
}

static void add_value(struct made *made, const char *value)
{
    add(made, "=\"");
    add(made, value);
    add(made, "\"");
}

static void add_texts(struct made *made, const apr_text *text)
{
    for (; text != NULL; text = text->next)
        add(made, text->text);
}

static void add_elem(struct made *made, const apr_xml_elem *elem, int style, const apr_array_header_t *uris, const int *spaces)
{
    int is_whole = style == APR_XML_X2T_FULL || style == APR_XML_X2T_FULL_NS_LANG;
    const apr_xml_elem *child;
    const apr_xml_attr *attribute;
    int at;

    if (is_whole) {
        add(made, "<");
        add_name(made, elem->name, elem->ns, spaces);
        for (attribute = elem->attr; attribute != NULL; attribute = attribute->next) {
            add(made, " ");
            add_name(made, attribute->name, attribute->ns, spaces);
            add_value(made, attribute->value);
        }
        /* The parser gives an element the very string of its parent, if it has no language of its own. */
        if (elem->lang != NULL && (elem->parent == NULL || elem->lang != elem->parent->lang)) {
            add(made, " xml:lang");
            add_value(made, elem->lang);
        }
        if (style == APR_XML_X2T_FULL_NS_LANG)
            for (at = uris->nelts; at--;) {
                add(made, " xmlns:");
                add_space(made, at);
                add_value(made, APR_XML_GET_URI_ITEM(uris, at));
            }
        if (APR_XML_ELEM_IS_EMPTY(elem)) {
            add(made, "/>");
            return;
        }
        add(made, ">");
    } else if (style == APR_XML_X2T_LANG_INNER) {
        add(made, elem->lang != NULL ? elem->lang : "");
        add_bytes(made, "", 1);
    }
    add_texts(made, elem->first_cdata.first);
    for (child = elem->first_child; child != NULL; child = child->next) {
        add_elem(made, child, APR_XML_X2T_FULL, NULL, spaces);
        add_texts(made, child->following_cdata.first);
    }
    if (is_whole) {
        add(made, "</");
        add_name(made, elem->name, elem->ns, spaces);
        add(made, ">");
    }
}

INSIDE void apr_xml_to_text(apr_pool_t *pool, const apr_xml_elem *elem, int style, apr_array_header_t *uris, int *spaces,
                            const char **text, apr_size_t *bytes)
{
    struct made made = { NULL, 0 };

    /* No module of httpd's asks for the prefixes that the document had. */
    if (style == APR_XML_X2T_PARSED)
        __builtin_trap();
    add_elem(&made, elem, style, uris, spaces);
    made.to = apr_palloc(pool, made.bytes + 1);
    made.bytes = 0;
    add_elem(&made, elem, style, uris, spaces);
    made.to[made.bytes] = 0;
    *text = made.to;
    if (bytes != NULL)
        *bytes = made.bytes + 1;
}
