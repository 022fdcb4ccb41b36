import { join } from 'node:path';
import type { StackPaths } from '../paths.js';

export interface JavaProgram {
  /** Folder name for its logs and temporary files. */
  readonly name: string;
  /** Heap and collector flags. */
  readonly flags: readonly string[];
  /** A resource inside the jars, not a file. */
  readonly logback: string;
  readonly mainClass: string;
}

/** How every RocketMQ program is started: its log folder hangs on user.home, whatever else is configured. */
export function javaArgs(paths: StackPaths, rocketmqLib: string, program: JavaProgram): string[] {
  return [
    ...program.flags,
    `-Duser.home=${paths.log(join('rocketmq', program.name))}`,
    `-Drocketmq.home.dir=${paths.dir}`,
    `-Drmq.logback.configurationFile=${program.logback}`,
    // TLS keys and, after a kill -9, a 12 MB library are left in it
    `-Djava.io.tmpdir=${paths.tmp(program.name)}`,
    '-cp',
    `${rocketmqLib}/*`,
    program.mainClass,
  ];
}
