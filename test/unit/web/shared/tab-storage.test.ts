import { expect } from 'chai';
import { openTabStorage, type BrowserStorage } from '../../../../web/shared/tab-storage.js';

describe('tab storage of a page', () => {
  let kept: Map<string, string>;
  let isFull: boolean;
  const storage: BrowserStorage = {
    getItem: (name) => kept.get(name) ?? null,
    setItem(name, value) {
      if (isFull) throw new DOMException('full', 'QuotaExceededError');
      kept.set(name, value);
    },
    removeItem: (name) => void kept.delete(name),
  };
  beforeEach(() => {
    kept = new Map();
    isFull = false;
  });

  it('keeps values through a reload', () => {
    openTabStorage(() => storage).write('key', 'k1');
    const tab = openTabStorage(() => storage);
    expect(tab.read('key')).to.equal('k1');
    tab.remove('key');
    expect(tab.read('key')).to.equal(null);
    expect(kept.size).to.equal(0);
  });

  it('keeps values until the page closes if the browser forbids storage', () => {
    const tab = openTabStorage(() => {
      throw new DOMException('forbidden', 'SecurityError');
    });
    expect(tab.read('key')).to.equal(null);
    tab.write('key', 'k1');
    expect(tab.read('key')).to.equal('k1');
    tab.remove('key');
    expect(tab.read('key')).to.equal(null);
  });

  it('returns the last value if storage is full', () => {
    const tab = openTabStorage(() => storage);
    tab.write('key', 'k1');
    isFull = true;
    tab.write('key', 'k2');
    tab.write('other', 'o1');
    expect([tab.read('key'), tab.read('other')]).to.deep.equal(['k2', 'o1']);
    expect(kept.get('key'), 'another purchase').to.equal(undefined);
    tab.remove('other');
    expect(tab.read('other')).to.equal(null);
    isFull = false;
    tab.write('key', 'k3');
    expect([tab.read('key'), kept.get('key')]).to.deep.equal(['k3', 'k3']);
  });
});
