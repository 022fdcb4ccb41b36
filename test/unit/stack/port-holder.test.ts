import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { assertPortsFree } from '../../../deploy/local/stack/ports.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { assertApiPortsFree } from '../../../deploy/local/up.js';

describe('a port in use [L1]', () => {
  it('is named with its process and a remedy', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      expect(() => assertPortsFree([{ port, label: 'Redis' }])).to.throw(
        StackError,
        new RegExp(
          `^Port ${port} \\(Redis\\) is in use by pid ${process.pid} .*; stop it, or start an instance elsewhere: npm start -- --dir`,
        ),
      );
    } finally {
      server.close();
    }
  });

  it('stops `npm start` before the servers boot if the api needs the port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const sentence = (label: string, flag: string): RegExp =>
      new RegExp(`^Port ${port} \\(${label}\\) is in use by pid ${process.pid} .*npm start -- ${flag} <port>`);
    const [forBuyers, forOperators] = [sentence('api', '--port'), sentence('api for operators', '--operators-port')];
    const [taken, free] = [String(port), { port: 0, operatorsPort: 0 }];
    try {
      expect(() => assertApiPortsFree({ ...free, port }, {}), 'as --port').to.throw(StackError, forBuyers);
      expect(() => assertApiPortsFree({ operatorsPort: 0 }, { PORT: taken }), 'as PORT').to.throw(
        StackError,
        forBuyers,
      );
      expect(() => assertApiPortsFree({ ...free, operatorsPort: port }, {})).to.throw(StackError, forOperators);
      expect(() => assertApiPortsFree({ port: 0 }, { PORT: taken, OPERATORS_PORT: taken }), 'free ones').not.to.throw();
    } finally {
      server.close();
    }
  });
});
