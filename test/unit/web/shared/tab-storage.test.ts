import { expect } from 'chai';
import { openTabStorage, type BrowserStorage } from '../../../../web/shared/tab-storage.js';

describe('what a page keeps in its tab', () => {
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

  it('is there again when the page is loaded again', () => {
    openTabStorage(() => storage).write('key', 'k1');
    const tab = openTabStorage(() => storage);
    expect(tab.read('key')).to.equal('k1');
    tab.remove('key');
    expect(tab.read('key')).to.equal(null);
    expect(kept.size).to.equal(0);
  });

  it('lives as long as the page where the browser forbids it', () => {
    const tab = openTabStorage(() => {
      throw new DOMException('forbidden', 'SecurityError');
    });
    expect(tab.read('key')).to.equal(null);
    tab.write('key', 'k1');
    expect(tab.read('key')).to.equal('k1');
    tab.remove('key');
    expect(tab.read('key')).to.equal(null);
  });

  it('where there is no room left, what was written last counts, and nothing older is left for the next page', () => {
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
