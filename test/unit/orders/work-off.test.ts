import { expect } from 'chai';
import { workOff } from '../../../src/orders/work-off.js';

const MAX = 4;
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe('work-off', () => {
  let due: number[];
  let handled: number[];
  let leases: number;
  beforeEach(() => {
    due = Array.from({ length: 10 }, (_, nth) => nth);
    handled = [];
    leases = 0;
  });
  const lease = async (): Promise<number[]> => {
    leases++;
    return due.splice(0, MAX);
  };

  it('takes items until nothing is due', async () => {
    await workOff(lease, async (one) => void handled.push(one), MAX);
    expect(handled).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(leases, 'the last take is not full').to.equal(3);
  });

  it('continues past a hanging item, and waits for it at the end', async () => {
    let free: () => void = () => undefined;
    const hangs = new Promise<void>((resolve) => (free = resolve));
    let isOver = false;
    const work = workOff(lease, (one) => (one === 0 ? hangs : Promise.resolve(void handled.push(one))), MAX);
    void work.then(() => (isOver = true));
    await turns();
    expect([handled, isOver]).to.deep.equal([[1, 2, 3, 4, 5, 6, 7, 8, 9], false]);
    free();
    await work;
  });

  it('keeps at most one and a half takes under way', async () => {
    const free: (() => void)[] = [];
    const work = workOff(lease, () => new Promise<void>((resolve) => void free.push(resolve)), MAX);
    await turns();
    expect(free).to.have.length(MAX);
    free[0]?.();
    await turns();
    expect(free, 'three are under way').to.have.length(MAX);
    free[1]?.();
    await turns();
    expect(free, 'two items and the next take').to.have.length(2 * MAX);
    for (let rest = 0; rest < 10; rest++) {
      for (const one of free) one();
      await turns();
    }
    await work;
    expect(free).to.have.length(10);
  });

  it('finishes the work under way after an error, then throws the error', async () => {
    let ended = 0;
    const fails = async (one: number): Promise<void> => {
      if (one === 1) throw new Error('no MySQL');
      await turns();
      ended++;
    };
    const error: unknown = await workOff(lease, fails, MAX).catch((thrown: unknown) => thrown);
    expect(error).to.be.an('error').with.property('message', 'no MySQL');
    expect([ended, leases]).to.deep.equal([3, 1]);
  });

  it('finishes the previous take and then throws the error if a lease fails', async () => {
    let ended = 0;
    const failing = async (): Promise<number[]> => {
      if (++leases === 2) throw new Error('no lease');
      return due.splice(0, MAX);
    };
    const handle = async (one: number): Promise<void> => {
      if (one < 2) return;
      await turns();
      ended++;
    };
    const error: unknown = await workOff(failing, handle, MAX).catch((thrown: unknown) => thrown);
    expect([(error as Error).message, ended]).to.deep.equal(['no lease', 2]);
  });
});
