import { expect } from 'chai';
import { isMetadata, metadataFault, METADATA_BYTES_MAX } from '../../../src/core/metadata.js';

const NAME_MAX = 40;
/** Returns metadata with exactly this many bytes as JSON. */
const ofBytes = (bytes: number): object => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) });

describe('purchase metadata', () => {
  it('is an object of strings', () => {
    for (const good of [{ cart: '42' }, { a: '', 'b.c_d-9': '\u0000"\\🖋' }, ofBytes(METADATA_BYTES_MAX)]) {
      expect(metadataFault(good), JSON.stringify(good)).to.equal(null);
      expect(isMetadata(good)).to.equal(true);
    }
    for (const bad of [undefined, null, 'x', 1, true, [], ['a'], { a: 1 }, { a: null }, { a: {} }, { a: ['x'] }]) {
      expect(metadataFault(bad), JSON.stringify(bad)).to.match(/^metadata must be an object of strings/);
      expect(isMetadata(bad)).to.equal(false);
    }
  });

  it('refuses half of a surrogate pair, because the store would then refuse the whole batch', () => {
    for (const half of ['\ud800', 'note 🖋'.slice(0, 6), '\udfff\ud83d', 'a\udc00z']) {
      expect(metadataFault({ a: 'x', note: half }), JSON.stringify(half)).to.match(
        /^metadata "note" contains half a character/,
      );
      expect(isMetadata({ note: half })).to.equal(false);
    }
  });

  it('has at most 512 bytes as UTF-8 JSON, including escapes', () => {
    expect(metadataFault(ofBytes(METADATA_BYTES_MAX + 1))).to.equal(
      'metadata must have at most 512 bytes as JSON, not 513.',
    );
    expect(metadataFault({ a: '\u00e9'.repeat(252) })).to.equal(null);
    expect(metadataFault({ a: '\u00e9'.repeat(253) })).to.match(/not 514/);
    expect(metadataFault({ a: '\n'.repeat(253) })).to.match(/not 514/);
  });

  it('refuses names that would change the order of fields or are unsafe as names [S6]', () => {
    for (const name of ['a', 'A_b.c-9', 'constructor', 'toString', 'x'.repeat(NAME_MAX)]) {
      expect(metadataFault(JSON.parse(`{${JSON.stringify(name)}:"v"}`)), name).to.equal(null);
    }
    for (const name of ['', '1', '_a', '__proto__', 'a b', 'a/b', '\u00e9', 'x'.repeat(NAME_MAX + 1), 'a\n']) {
      const fault = metadataFault(JSON.parse(`{${JSON.stringify(name)}:"v"}`));
      expect(fault, name).to.match(/^metadata has the name .*; a name begins with a letter/);
      expect(fault?.length, 'stays short').to.be.below(250);
    }
  });

  it('accepts an empty object from a caller and refuses it in a message', () => {
    expect(metadataFault({})).to.equal(null);
    expect(isMetadata({})).to.equal(false);
  });
});
