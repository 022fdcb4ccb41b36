import { expect } from 'chai';
import request from 'supertest';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import { bearer, FakeServices, startServer, type Started } from './http-harness.js';

describe('admin profiles', () => {
  let server: Started;
  let asked: [kind: string, forMs: number][];
  let entries: AuditEntry[];
  let busy: boolean;

  beforeEach(async () => {
    [asked, entries, busy] = [[], [], false];
    const profile = (kind: string, forMs: number): Promise<string | null> => {
      asked.push([kind, forMs]);
      return Promise.resolve(busy ? null : '{"nodes":[]}');
    };
    const append = (entry: AuditEntry): Promise<void> => Promise.resolve(void entries.push(entry));
    const list = () => Promise.reject(new Error('nothing is listed'));
    server = await startServer(new FakeServices({ profiler: { profile }, audit: { list, append } }));
  });
  afterEach(() => server.stop());

  const get = (path: string): request.Test =>
    request(server.operatorsUrl)
      .get(path)
      .set('authorization', bearer('boss', ['admin']));

  it('returns a profile as a file for the requested duration, and writes the audit log', async () => {
    const cpu = await get('/debug/profile?seconds=3');
    expect([cpu.status, cpu.body]).to.deep.equal([200, { nodes: [] }]);
    expect(cpu.headers['content-disposition']).to.equal(`attachment; filename="api-${process.pid}.cpuprofile"`);
    expect((await get('/debug/heap')).headers['content-disposition']).to.include('.heapprofile');
    expect(asked).to.deep.equal([
      ['cpu', 3000],
      ['heap', 10_000],
    ]);
    expect(entries.map(({ actor, action, after }) => [actor, action, after])).to.deep.equal([
      ['boss', 'api.profiled', { kind: 'cpu', seconds: 3 }],
      ['boss', 'api.profiled', { kind: 'heap', seconds: 10 }],
    ]);
  });

  it('runs one profile at a time, for at most half a minute', async () => {
    busy = true;
    const { status, body } = await get('/debug/heap');
    expect([status, body.code]).to.deep.equal([409, 'profile_running']);
    for (const seconds of ['31', '0', 'x'])
      expect((await get(`/debug/profile?seconds=${seconds}`)).status).to.equal(400);
  });
});
