#include "dmqp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef DMQP_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

struct dmqp_connection {
    int socket;
    int program_order;
    char problem[200];
#ifdef DMQP_TLS
    SSL_CTX *context;
    SSL *tls;
#endif
};

static int fail(struct dmqp_connection *connection, int error, const char *what) {
    snprintf(connection->problem, sizeof connection->problem, "%s: %s", what, strerror(error));
    if (connection->socket >= 0) {
        close(connection->socket);
        connection->socket = -1;
    }
    return error;
}

/* Numbers on the wire are in network byte order. */

static void put_number(unsigned char *at, uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

static uint64_t get_number(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* All bytes in or out, or an errno. A socket that times out sets EAGAIN: here it is ETIMEDOUT, because EAGAIN is an
 * answer of the server. */

static int last_error(void) {
    return errno == EAGAIN || errno == EWOULDBLOCK ? ETIMEDOUT : errno ? errno : ECONNRESET;
}

static ssize_t some(struct dmqp_connection *c, char *data, size_t size, int sending) {
    errno = 0;
#ifdef DMQP_TLS
    if (c->tls != NULL)
        return sending ? SSL_write(c->tls, data, (int)size) : SSL_read(c->tls, data, (int)size);
#endif
    return sending ? send(c->socket, data, size, MSG_NOSIGNAL) : recv(c->socket, data, size, 0);
}

static int all(struct dmqp_connection *c, void *data, size_t size, int sending) {
    char *at = data;
    if (c->socket < 0)
        return ENOTCONN;
    while (size > 0) {
        ssize_t count = some(c, at, size, sending);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return fail(c, count == 0 ? ECONNRESET : last_error(), sending ? "cannot send" : "cannot receive");
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

/* Connecting */

static int connect_to(struct dmqp_connection *c, const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found, *one;
    struct timeval timeout = {.tv_sec = DMQP_TIMEOUT_S};
    int on = 1, error = ECONNREFUSED, problem = getaddrinfo(host, port, &hints, &found);
    if (problem != 0) {
        fail(c, EHOSTUNREACH, gai_strerror(problem));
        return EHOSTUNREACH;
    }
    for (one = found; one != NULL && c->socket < 0; one = one->ai_next) {
        c->socket = socket(one->ai_family, one->ai_socktype, one->ai_protocol);
        if (c->socket < 0)
            continue;
        setsockopt(c->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        setsockopt(c->socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        setsockopt(c->socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(c->socket, one->ai_addr, one->ai_addrlen) < 0) {
            error = last_error();
            close(c->socket);
            c->socket = -1;
        }
    }
    freeaddrinfo(found);
    return c->socket < 0 ? fail(c, error, "cannot connect") : 0;
}

#ifdef DMQP_TLS
static int shake_hands(struct dmqp_connection *c, const char *host, const char *ca_file) {
    unsigned char address[sizeof(struct in6_addr)];
    c->context = SSL_CTX_new(TLS_client_method());
    if (c->context == NULL)
        return fail(c, ENOMEM, "TLS");
    SSL_CTX_set_min_proto_version(c->context, TLS1_2_VERSION);
    SSL_CTX_set_verify(c->context, SSL_VERIFY_PEER, NULL);
    if (ca_file == NULL ? !SSL_CTX_set_default_verify_paths(c->context)
                        : !SSL_CTX_load_verify_locations(c->context, ca_file, NULL))
        return fail(c, ENOENT, ca_file == NULL ? "certificates" : ca_file);
    c->tls = SSL_new(c->context);
    if (c->tls == NULL || !SSL_set_fd(c->tls, c->socket))
        return fail(c, ENOMEM, "TLS");
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->tls), host);
    } else {
        SSL_set1_host(c->tls, host);
        SSL_set_tlsext_host_name(c->tls, host);
    }
    if (SSL_connect(c->tls) != 1) {
        long verified = SSL_get_verify_result(c->tls);
        return fail(c, EPROTO, verified != X509_V_OK ? X509_verify_cert_error_string(verified) : "no TLS");
    }
    return 0;
}
#endif

int dmqp_open(struct dmqp_connection **connection, const char *host, const char *port,
              const struct dmqp_options *options) {
    struct dmqp_connection *c = *connection = calloc(1, sizeof *c);
    if (c == NULL)
        return ENOMEM;
    c->socket = -1;
    c->program_order = options->program_order;
    int error = connect_to(c, host, port);
    if (error == 0 && !options->plain) {
#ifdef DMQP_TLS
        error = shake_hands(c, host, options->ca_file);
#else
        error = fail(c, EOPNOTSUPP, "this program was built without TLS (libssl-dev was not there)");
#endif
    }
    return error;
}

void dmqp_close(struct dmqp_connection *c) {
    if (c == NULL)
        return;
#ifdef DMQP_TLS
    if (c->tls != NULL) {
        if (c->socket >= 0)
            SSL_shutdown(c->tls);
        SSL_free(c->tls);
    }
    SSL_CTX_free(c->context);
#endif
    if (c->socket >= 0)
        close(c->socket);
    free(c);
}

const char *dmqp_problem(const struct dmqp_connection *c) { return c == NULL ? "out of memory" : c->problem; }

/* Messages */

int dmqp_send(struct dmqp_connection *c, uint8_t method, uint8_t topic_id, const void *payload, uint32_t length) {
    unsigned char header[DMQP_HEADER_SIZE] = {0};
    int first = c->program_order ? 13 : 12;
    put_number(header + 8, length, 4);
    header[first] = method;
    header[first + 1] = topic_id;
    int error = all(c, header, sizeof header, 1);
    return error != 0 || length == 0 ? error : all(c, (void *)payload, length, 1);
}

int dmqp_receive(struct dmqp_connection *c, struct dmqp_message *response) {
    unsigned char header[DMQP_HEADER_SIZE];
    int first = c->program_order ? 13 : 12;
    memset(response, 0, sizeof *response);
    int error = all(c, header, sizeof header, 0);
    if (error != 0)
        return error;
    response->timestamp = get_number(header, 8);
    response->length = (uint32_t)get_number(header + 8, 4);
    response->method = header[first];
    response->topic_id = header[first + 1];
    response->status = header[first + 2];
    if (response->method != DMQP_RESPONSE || response->length > DMQP_PAYLOAD_MAX)
        return fail(c, EPROTO, "this is no response (does the server use the other order of headers?)");
    response->payload = malloc(response->length + 1);
    if (response->payload == NULL)
        return fail(c, ENOMEM, "a response");
    error = all(c, response->payload, response->length, 0);
    if (error != 0) {
        dmqp_free(response);
        return error;
    }
    response->payload[response->length] = '\0'; /* so that text can be printed */
    return response->status;
}

void dmqp_free(struct dmqp_message *message) {
    free(message->payload);
    message->payload = NULL;
}

static int call(struct dmqp_connection *c, uint8_t method, uint8_t topic_id, const void *payload, uint32_t length,
                struct dmqp_message *response) {
    int error = dmqp_send(c, method, topic_id, payload, length);
    return error != 0 ? error : dmqp_receive(c, response);
}

int dmqp_push(struct dmqp_connection *c, uint8_t topic_id, const void *payload, uint32_t length) {
    struct dmqp_message response = {0};
    int error = call(c, DMQP_PUSH, topic_id, payload, length, &response);
    dmqp_free(&response);
    return error;
}

int dmqp_pop(struct dmqp_connection *c, uint8_t topic_id, struct dmqp_message *message) {
    memset(message, 0, sizeof *message);
    return call(c, DMQP_POP, topic_id, NULL, 0, message);
}

int dmqp_peek(struct dmqp_connection *c, uint8_t topic_id, struct dmqp_message *message) {
    memset(message, 0, sizeof *message);
    return call(c, DMQP_PEEK, topic_id, NULL, 0, message);
}

int dmqp_peek_timestamp(struct dmqp_connection *c, uint8_t topic_id, uint64_t *timestamp) {
    struct dmqp_message response = {0};
    int error = call(c, DMQP_PEEK_TIMESTAMP, topic_id, NULL, 0, &response);
    *timestamp = response.timestamp;
    dmqp_free(&response);
    return error;
}
