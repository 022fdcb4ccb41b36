import { expect } from 'chai';
import sinon from 'sinon';
import { CliError } from '../../../src/process/cli-error.js';
import { askHealth, healthCommand } from '../../../src/cli/health.js';
import { startProbeServer, type ProbeServer } from '../../../src/http/probe-server.js';
import type { ReadyReport } from '../../../src/http/services.js';
import { partial } from '../../helpers/partial.js';

describe('seckill health', () => {
  const WELL: ReadyReport = { ready: true, dependencies: [{ name: 'redis', ok: true, detail: 'answers' }] };
  const ILL: ReadyReport = {
    ready: false,
    dependencies: [
      { name: 'redis', ok: true, detail: 'answers' },
      { name: 'mysql', ok: false, detail: 'no answer within 1000 ms' },
    ],
  };
  let lines: string[];
  let report: ReadyReport;
  let probe: ProbeServer;
  let address: string;
  /** The port of a server that is already closed. */
  let nobody: string;
  const open = (): Promise<ProbeServer> =>
    startProbeServer(
      { ready: async () => report, metricsPage: partial({ isFor: () => true, read: async () => '' }) },
      { host: '127.0.0.1', port: 0 },
    );

  before(async () => {
    const gone = await open();
    nobody = `http://127.0.0.1:${gone.port}`;
    probe = await open();
    await gone.close();
    address = `http://127.0.0.1:${probe.port}`;
  });
  after(() => probe.close());
  beforeEach(() => {
    lines = [];
    sinon.stub(console, 'log').callsFake((line: string) => void lines.push(line));
    report = WELL;
  });
  afterEach(() => sinon.restore());

  const refusal = (asking: Promise<unknown>): Promise<unknown> =>
    asking.then(
      () => expect.fail('it said yes'),
      (error: unknown) => error,
    );

  it('succeeds if a program answers at one of several addresses', async () => {
    await askHealth([nobody, address], 'alive');
    expect(lines).to.deep.equal([`The program at ${address} is alive.`]);
  });

  it('names the servers that do not answer if a program is alive but not ready', async () => {
    report = ILL;
    await askHealth([address], 'alive');
    const error = await refusal(askHealth([address], 'ready'));
    const why = `the program at ${address} is not ready: mysql (no answer within 1000 ms)`;
    expect(error).to.be.instanceOf(CliError).with.property('message', why);
  });

  it('fails and names the addresses it asked if no program answers', async () => {
    const error = await refusal(askHealth([nobody], 'alive'));
    expect(error).to.be.instanceOf(CliError).with.property('message', `no answer from ${nobody} (ECONNREFUSED)`);
  });

  it('asks the configured address, or the loopback address if the program listens on 0.0.0.0', async () => {
    sinon.stub(process, 'env').value({ METRICS_HOST: '0.0.0.0', METRICS_PORT: String(probe.port) });
    await healthCommand().parseAsync(['worker', '--ready'], { from: 'user' });
    expect(lines).to.deep.equal([`The program at ${address} is ready.`]);
  });
});
