import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BareAnswer } from './bare-http.js';

/** As many as the api asks the kernel for: else connections of the load generator would wait a second for their turn. */
const BACKLOG = 4096;

process.once('message', (message) => {
  const { status, headers, body } = message as BareAnswer;
  // The body of the request is not read, just as the api does not read that of a buyer it refuses from memory.
  const server = createServer((_req, res) => {
    res.writeHead(status, headers as string[]);
    res.end(body, 'latin1');
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
    process.send?.((server.address() as AddressInfo).port);
  });
});
process.once('disconnect', () => process.exit());
process.on('SIGINT', () => undefined); // the bench ends it
