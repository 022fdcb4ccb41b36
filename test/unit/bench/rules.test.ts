import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { BenchError } from '../../../bench/bench-error.js';
import { RulesAdmin } from '../../../bench/session/rules.js';
import { createAuthenticator } from '../../../src/http/auth.js';

const SECRET = 'a secret of the test with enough bytes';

/** The admin addresses of an api, as far as the bench uses them. New rules are in force after some looks at /metrics. */
class FakeApi {
  version = 3;
  rules: unknown = { lists: { mode: 'dry_run' } };
  readonly published: unknown[] = [];
  #inForce = 3;
  #looks = 0;
  readonly #auth = createAuthenticator({ algorithm: 'HS256', secret: SECRET }, { cacheMax: 0 });
  readonly server: Server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const body = (text === '' ? {} : JSON.parse(text)) as { version?: number; rules?: Record<string, unknown> };
      if (req.url === '/metrics') return void res.end(`seckill_admission_rules_version ${this.#lookAtVersion()}\n`);
      const who = this.#auth.authenticate(req.headers.authorization);
      if (typeof who === 'string' || !who.roles.includes('admin')) return void res.writeHead(403).end('{}');
      if (req.url === '/admin/v1/rules/check') {
        return void res.end(JSON.stringify({ valid: Object.keys(body.rules ?? {}).every((name) => name === 'lists') }));
      }
      if (req.method === 'PUT') this.#publish(body);
      res.end(JSON.stringify({ version: this.version, rules: this.rules }));
    });
  });

  #publish({ version, rules }: { version?: number; rules?: unknown }): void {
    expect(version, 'made from the newest').to.equal(this.version);
    this.version++;
    this.rules = rules;
    this.published.push(rules);
    this.#looks = 0;
  }

  #lookAtVersion(): number {
    if (++this.#looks >= 3) this.#inForce = this.version;
    return this.#inForce;
  }

  get inForce(): boolean {
    return this.#inForce === this.version;
  }
}

describe('rules of a scenario', () => {
  let api: FakeApi;
  let admin: RulesAdmin;

  beforeEach(async () => {
    api = new FakeApi();
    await new Promise<void>((resolve) => api.server.listen(0, '127.0.0.1', resolve));
    const { port } = api.server.address() as AddressInfo;
    admin = new RulesAdmin({ secret: SECRET, port: () => port });
  });

  afterEach(
    () =>
      new Promise<void>((resolve) => {
        api.server.close(() => resolve());
        api.server.closeAllConnections();
      }),
  );

  it('are in force before the work begins, and those that were there before come back', async () => {
    const before = api.rules;
    const seen = await admin.during({ limits: { mode: 'on' } }, () => Promise.resolve([api.rules, api.inForce]));
    expect(seen).to.deep.equal([{ limits: { mode: 'on' } }, true]);
    expect(api.published).to.deep.equal([{ limits: { mode: 'on' } }, before]);
    expect(api.inForce).to.equal(true);
  });

  it('come back too when the work fails, and its error is told', async () => {
    const before = api.rules;
    const error = await admin.during({}, () => Promise.reject(new Error('broken'))).catch((thrown: unknown) => thrown);
    expect(error).to.have.property('message', 'broken');
    expect(api.rules).to.deep.equal(before);
  });

  it('a layer is known if the api takes its rules', async () => {
    expect([await admin.knows('lists'), await admin.knows('sign')]).to.deep.equal([true, false]);
  });

  it('what the api refuses is one sentence', async () => {
    const { port } = api.server.address() as AddressInfo;
    const anonymous = new RulesAdmin({ secret: 'another secret of the test with bytes', port: () => port });
    const error = await anonymous.knows('lists').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(BenchError).with.property('message').that.includes('was answered 403');
  });
});
