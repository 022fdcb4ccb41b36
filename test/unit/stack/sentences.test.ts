import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assertDiskSpace } from '../../../deploy/local/stack/files.js';
import { causeInLog } from '../../../deploy/local/stack/managed-server.js';
import { mavenFailure } from '../../../deploy/local/stack/maven.js';
import { explainFileError, StackError } from '../../../deploy/local/stack/stack-error.js';
import { findJava, parseJavaMajor } from '../../../deploy/local/stack/tools.js';
import { useTempFolder } from './temp-folder.js';

describe('versions of Java', () => {
  const outputs: [string, number | null][] = [
    ['openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17],
    ['openjdk version "21" 2023-09-19', 21],
    ['java version "1.8.0_392"', 8],
    ['Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea"', 25],
    ['Unrecognized option', null],
  ];
  for (const [output, major] of outputs) {
    it(`read ${major} from ${output.split('\n').at(-1)}`, () => expect(parseJavaMajor(output)).to.equal(major));
  }

  it('throw one sentence with the searched places when Java is missing', async () => {
    const error = await findJava({ JAVA_HOME: '/nowhere' }).catch((reason: Error) => reason);
    expect(error).to.be.instanceOf(StackError);
    expect((error as Error).message).to.equal(
      'No java found in JAVA_HOME (/nowhere); install a JDK 17 or newer, RocketMQ needs it.',
    );
  });
});

describe('an error of Maven', () => {
  it('becomes one sentence without addresses', () => {
    const output =
      '[INFO] Scanning\n[ERROR] Could not transfer artifact a:b:jar:1 from/to central (https://x.y/z): ' +
      'Connection refused -> [Help 1]\n[ERROR] more';
    expect(mavenFailure(output)).to.equal(
      'Maven could not fetch the servers: Could not transfer artifact a:b:jar:1 from/to central (the repository): ' +
        'Connection refused; check the network (or a proxy in the Maven settings) and run the same command again.',
    );
  });

  it('names a full disk when Maven reports it', () => {
    expect(mavenFailure('[ERROR] x: No space left on device')).to.match(/^Maven ran out of disk space/);
  });
});

describe('errors of the file system', () => {
  const folder = useTempFolder();
  const errorOf = (code: string, more: object = {}): unknown =>
    explainFileError(Object.assign(new Error('raw'), { code, ...more }), '/s');

  it('are explained when a person can mend them, and stay as they are otherwise', () => {
    expect(errorOf('ENOSPC'))
      .to.be.instanceOf(StackError)
      .with.property('message')
      .match(/disk of \/s is full/);
    expect(errorOf('EACCES', { path: '/s/x' }))
      .to.have.property('message')
      .match(/^Cannot write to \/s\/x \(EACCES\)/);
    expect(errorOf('EACCES', { path: '/s/system.lock.12.12.tmp' }))
      .to.have.property('message')
      .match(/^Cannot write to \/s\/system\.lock \(EACCES\)/);
    expect(errorOf('ENOENT', { syscall: 'mkdir' })).to.be.instanceOf(StackError);
    expect(errorOf('ENOENT', { syscall: 'open' })).to.have.property('message', 'raw');
  });

  it('are foreseen when the disk has too little space [L3]', () => {
    expect(() => assertDiskSpace(folder(), 1)).to.not.throw();
    expect(() => assertDiskSpace(folder(), Number.MAX_SAFE_INTEGER)).to.throw(
      StackError,
      /MiB left, \d+ MiB are needed/,
    );
  });
});

describe('the cause of a death in a log', () => {
  const folder = useTempFolder();
  const log = (): string => join(folder(), 'x.log');

  it('is the last line that names a reason, without stack frames', () => {
    writeFileSync(log(), 'start\n[ERROR] Cannot bind\n  at a.b(C.java:1)\nbye\n');
    expect(causeInLog(log())).to.equal('[ERROR] Cannot bind');
  });

  it('is the last line of a short log, and null when the server was killed or has no log', () => {
    writeFileSync(log(), 'one\ntwo\n');
    expect(causeInLog(log())).to.equal('two');
    writeFileSync(log(), 'a\nb\nc\nready\n0 [Warning] Aborted connection, error\n');
    expect(causeInLog(log())).to.equal(null);
    expect(causeInLog(join(folder(), 'none'))).to.equal(null);
  });

  it('comes from this start, not from an earlier start', () => {
    const before = 'fatal: long ago\n';
    writeFileSync(log(), `${before}hello\n`);
    expect(causeInLog(log(), before.length)).to.equal('hello');
  });
});
