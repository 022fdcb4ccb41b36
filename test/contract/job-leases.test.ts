import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { createJobLeases } from '../../src/mysql/job-leases.js';
import { until } from '../chaos/harness/wait.js';
import { mysqlWorld } from './repository-worlds.js';
import { useWorld } from './on-each-world.js';

const unique = (): string => randomBytes(12).toString('base64url');

describe('JobLeases on mysql', () => {
  const world = useWorld(mysqlWorld);
  let job: string;
  beforeEach(() => (job = unique()));
  const hold = (owner: string, leaseMs: number): Promise<boolean> =>
    createJobLeases(world.pool).hold(job, owner, leaseMs);

  it('lets one of many concurrent callers take and keep the lease', async () => {
    const owners = Array.from({ length: 8 }, unique);
    const held = await Promise.all(owners.map((owner) => hold(owner, 60_000)));
    expect(held.filter(Boolean)).to.have.length(1);
    expect(await Promise.all(owners.map((owner) => hold(owner, 60_000)))).to.deep.equal(held);
  });

  it('blocks no caller when the duration of a lease is zero', async () => {
    for (const owner of ['one', 'other', 'one']) expect(await hold(owner, 0)).to.equal(true);
    expect(await hold('third', 60_000)).to.equal(true);
  });

  it('frees the lease of a dead owner when it expires, and keeps one lease per job', async () => {
    expect(await hold('gone', 50)).to.equal(true);
    await until('the lease has ended', () => hold('next', 60_000));
    expect(await hold('gone', 50)).to.equal(false);
    job = unique();
    expect(await hold('gone', 50)).to.equal(true);
  });
});
