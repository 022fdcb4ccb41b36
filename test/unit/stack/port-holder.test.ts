import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { assertPortsFree, portInUseSentence } from '../../../deploy/local/stack/ports.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { assertApiPortsFree } from '../../../deploy/local/up.js';

describe('a port in use [L1]', () => {
  const redis = { port: 16_379, label: 'Redis' };

  it('is named with its holder and what to do', () => {
    const sentence = portInUseSentence(redis, { pid: 4711, command: 'redis-server *:16379' });
    expect(sentence).to.equal(
      'Port 16379 (Redis) is in use by pid 4711 (redis-server *:16379); stop it, ' +
        'or start an instance elsewhere with --dir <folder> --free-ports.',
    );
  });

  it('is named without a holder when that cannot be seen', () => {
    expect(portInUseSentence(redis, null)).to.match(/^Port 16379 \(Redis\) is in use by another process/);
  });

  it('is found with the pid of the listening process', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      expect(() => assertPortsFree([{ port, label: 'Redis' }])).to.throw(
        StackError,
        new RegExp(`Port ${port} \\(Redis\\) is in use by pid ${process.pid} `),
      );
    } finally {
      server.close();
    }
  });

  it('stops `npm start` before the servers boot when the api needs it', async () => {
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
