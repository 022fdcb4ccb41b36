import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { certificateFiles } from '../../deploy/local/stack/certificates.js';
import { Buyers } from '../chaos/harness/buyers.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { useSystem } from '../helpers/system.js';

describe('a service with the plain RocketMQ client, over TLS with a private authority', () => {
  let api: Program;
  let example: ChildProcess | undefined;
  const system = useSystem(async ({ programs }) => {
    [api] = await Promise.all([
      programs.start('api'),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
    ]);
  });
  after(() => void example?.kill('SIGKILL'));

  it('receives an order event when only the environment names the certificate authority', async () => {
    const { stack } = system;
    const { code, stderr } = await runCommand(['topics', '--group', 'shop-by-tls'], stack.env);
    expect(code, stderr).to.equal(0);
    const { ROCKETMQ_ENDPOINT, ROCKETMQ_ACCESS_KEY, ROCKETMQ_ACCESS_SECRET } = stack.env;
    let [output, errors] = ['', ''];
    example = spawn(process.execPath, [join(REPO_DIR, 'examples/order-events/main.mjs')], {
      env: {
        ...{ PATH: process.env.PATH, ROCKETMQ_ENDPOINT, ROCKETMQ_ACCESS_KEY, ROCKETMQ_ACCESS_SECRET },
        ...{ ROCKETMQ_TLS: 'grpc', GROUP: 'shop-by-tls' },
        GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: certificateFiles(stack.servers.dir).ca,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    example.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
    example.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));

    const { saleId } = await openSale(stack);
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    // a new group starts with the newest message, so buyers buy until an event arrives
    let n = 0;
    const heard = async (): Promise<boolean> => {
      if (!output.includes('"type":"order.created"') && n < 10) await buyers.buy(`buyer-${n++}`);
      return output.includes(`"saleId":"${saleId}"`);
    };
    await until(`an event comes by TLS; it says: ${errors}`, heard, { everyMs: 2_000 });
  });
});
