/* A client of DMQP: push, pop and peek over one connection that stays open, with TLS or without.
 *
 * Every call returns 0, or an errno: what the server answered (ENODATA: the topic is empty; EAGAIN: try again, or the
 * outcome is unknown; EMSGSIZE, ENOSYS, EPROTO, EIO), or what happened on the way (ETIMEDOUT, ECONNRESET, ...). After
 * an error on the way the connection is closed, and `dmqp_open` opens another. Timeouts are 30 seconds. */
#ifndef DMQP_H
#define DMQP_H

#include <stddef.h>
#include <stdint.h>

#define DMQP_HEADER_SIZE 16
#define DMQP_PAYLOAD_MAX (1024 * 1024)
#define DMQP_TIMEOUT_S 30

enum dmqp_method { DMQP_RESPONSE, DMQP_PUSH, DMQP_POP, DMQP_PEEK, DMQP_PEEK_TIMESTAMP };

struct dmqp_options {
    int plain;              /* no TLS */
    const char *ca_file;    /* certificates to trust, in PEM; NULL: those of the operating system */
    int program_order;      /* the last four bytes of a header are unused, method, topic id, status */
};

struct dmqp_message {
    uint64_t timestamp; /* Unix seconds */
    uint32_t length;
    uint8_t method, topic_id, status;
    char *payload; /* of a response; freed by dmqp_free */
};

struct dmqp_connection;

int dmqp_open(struct dmqp_connection **connection, const char *host, const char *port,
              const struct dmqp_options *options);
void dmqp_close(struct dmqp_connection *connection);

/* Send a request without waiting, and read the next response: several requests may be under way at once. */
int dmqp_send(struct dmqp_connection *connection, uint8_t method, uint8_t topic_id, const void *payload,
              uint32_t length);
int dmqp_receive(struct dmqp_connection *connection, struct dmqp_message *response);
void dmqp_free(struct dmqp_message *message);

/* Send one request and wait for its response. */
int dmqp_push(struct dmqp_connection *connection, uint8_t topic_id, const void *payload, uint32_t length);
int dmqp_pop(struct dmqp_connection *connection, uint8_t topic_id, struct dmqp_message *message);
int dmqp_peek(struct dmqp_connection *connection, uint8_t topic_id, struct dmqp_message *message);
int dmqp_peek_timestamp(struct dmqp_connection *connection, uint8_t topic_id, uint64_t *timestamp);

/* For people: what the last error on the way was. */
const char *dmqp_problem(const struct dmqp_connection *connection);

#endif
