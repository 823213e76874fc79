/* Push, pop and peek from the command line. The exit code is the status: 0, or an errno such as 61 (ENODATA). */
#include "dmqp.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: dmqp [--plain] [--ca FILE] [--program-order] HOST PORT COMMAND TOPIC\n"
    "\n"
    "  push TOPIC            push standard input as one message\n"
    "  push-lines TOPIC      push each line of standard input as a message, without waiting in between\n"
    "  pop TOPIC             take the next message, and write it to standard output\n"
    "  pop-all TOPIC         take messages until the topic is empty, one a line\n"
    "  peek TOPIC            write the next message, and leave it where it is\n"
    "  peek-timestamp TOPIC  write when the next message was pushed, in Unix seconds\n"
    "\n"
    "TOPIC is a number from 0 to 255. The exit code is the status: 0, 61 (ENODATA, empty), 90 (EMSGSIZE), ...\n"
    "--ca FILE: the server's certificate, dmqp-certificate.pem in its data directory, or its authority's.\n";

#define UNDER_WAY_MAX 500 /* lines that are pushed and not answered yet: the server reads no more than so many ahead */

static int complain(const char *what, int error) {
    fprintf(stderr, "dmqp: %s: %s\n", what, strerror(error));
    return error;
}

static int push_input(struct dmqp_connection *c, uint8_t topic) {
    size_t size = 0, room = 65536;
    char *data = malloc(room);
    while (data != NULL) {
        size_t count = fread(data + size, 1, room - size, stdin);
        size += count;
        if (count == 0)
            break;
        if (size == room)
            data = realloc(data, room *= 2);
    }
    if (data == NULL)
        return complain("reading standard input", ENOMEM);
    int error = dmqp_push(c, topic, data, (uint32_t)size);
    free(data);
    return error == 0 ? 0 : complain("push", error);
}

static int receive_pushed(struct dmqp_connection *c, long *failed) {
    struct dmqp_message response;
    int error = dmqp_receive(c, &response);
    if (error != 0)
        ++*failed;
    dmqp_free(&response);
    return error;
}

static int push_lines(struct dmqp_connection *c, uint8_t topic) {
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    long sent = 0, answered = 0, failed = 0;
    int first_error = 0, error;
    while ((size = getline(&line, &room, stdin)) >= 0) {
        if (size > 0 && line[size - 1] == '\n')
            size--;
        error = dmqp_send(c, DMQP_PUSH, topic, line, (uint32_t)size);
        if (error != 0) {
            free(line);
            return complain("push", error);
        }
        sent++;
        if (sent - answered == UNDER_WAY_MAX) {
            error = receive_pushed(c, &failed);
            first_error = first_error != 0 ? first_error : error;
            answered++;
        }
    }
    for (; answered < sent; answered++) {
        error = receive_pushed(c, &failed);
        first_error = first_error != 0 ? first_error : error;
    }
    free(line);
    fprintf(stderr, "%ld pushed, %ld failed\n", sent - failed, failed);
    return first_error;
}

static int show(struct dmqp_connection *c, uint8_t topic, int take) {
    struct dmqp_message message;
    int error = take ? dmqp_pop(c, topic, &message) : dmqp_peek(c, topic, &message);
    if (error == 0)
        fwrite(message.payload, 1, message.length, stdout);
    dmqp_free(&message);
    return error == 0 ? 0 : complain(take ? "pop" : "peek", error);
}

static int pop_all(struct dmqp_connection *c, uint8_t topic) {
    struct dmqp_message message;
    int error;
    while ((error = dmqp_pop(c, topic, &message)) == 0 || error == EAGAIN) {
        if (error == 0) {
            fwrite(message.payload, 1, message.length, stdout);
            putchar('\n');
        }
        dmqp_free(&message);
    }
    return error == ENODATA ? 0 : complain("pop", error);
}

static int run(struct dmqp_connection *c, const char *command, uint8_t topic) {
    uint64_t timestamp;
    int error;
    if (strcmp(command, "push") == 0)
        return push_input(c, topic);
    if (strcmp(command, "push-lines") == 0)
        return push_lines(c, topic);
    if (strcmp(command, "pop") == 0)
        return show(c, topic, 1);
    if (strcmp(command, "pop-all") == 0)
        return pop_all(c, topic);
    if (strcmp(command, "peek") == 0)
        return show(c, topic, 0);
    if (strcmp(command, "peek-timestamp") == 0) {
        error = dmqp_peek_timestamp(c, topic, &timestamp);
        if (error != 0)
            return complain("peek-timestamp", error);
        printf("%llu\n", (unsigned long long)timestamp);
        return 0;
    }
    fprintf(stderr, "dmqp: there is no command %s\n%s", command, USAGE);
    return 2;
}

int main(int argc, char **argv) {
    static const struct option OPTIONS[] = {{"plain", no_argument, NULL, 'p'},
                                            {"ca", required_argument, NULL, 'c'},
                                            {"program-order", no_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    struct dmqp_options options = {0};
    struct dmqp_connection *connection;
    char *end;
    int one, error;
    signal(SIGPIPE, SIG_IGN); /* a server that is gone is an error, not the end of this program */
    while ((one = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (one == 'p')
            options.plain = 1;
        else if (one == 'c')
            options.ca_file = optarg;
        else if (one == 'o')
            options.program_order = 1;
        else
            return fputs(USAGE, stderr), 2;
    }
    if (argc - optind != 4)
        return fputs(USAGE, stderr), 2;
    long topic = strtol(argv[optind + 3], &end, 10);
    if (*end != '\0' || topic < 0 || topic > 255) {
        fprintf(stderr, "dmqp: %s is no topic: topics are numbers from 0 to 255\n", argv[optind + 3]);
        return 2;
    }
    error = dmqp_open(&connection, argv[optind], argv[optind + 1], &options);
    if (error != 0)
        fprintf(stderr, "dmqp: %s\n", dmqp_problem(connection));
    else
        error = run(connection, argv[optind + 2], (uint8_t)topic);
    dmqp_close(connection);
    return error;
}
