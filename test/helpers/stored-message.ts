/** The parts of a message that a test chooses. */
export interface StoredParts {
  readonly topic?: string;
  readonly body?: Buffer;
  readonly properties?: string;
  readonly flags?: number;
  readonly storedAtMs?: number;
  /** Its offset in its queue. */
  readonly offset?: number;
}

export const [V6_BORN, V6_STORED] = [1 << 4, 1 << 5];

/** Encodes a message as the commit log keeps it. The length of a long topic has two bytes. */
export function storedMessage({
  topic = 'T',
  body = Buffer.from('hi'),
  properties = '',
  flags = 0,
  storedAtMs = 7,
  offset = 42,
}: StoredParts): Buffer {
  const int32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(value);
    return bytes;
  };
  const int64 = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt(value));
    return bytes;
  };
  const int16 = (value: number): Buffer => int32(value).subarray(2);
  const isLong = topic.length > 127;
  const rest = Buffer.concat([
    int32(isLong ? -626_843_477 : -626_843_481),
    int32(0),
    int32(3), // queue id
    int32(0),
    int64(offset),
    int64(4096), // offset in the log
    int32(flags),
    int64(5), // time and host of its birth
    Buffer.alloc((flags & V6_BORN) === 0 ? 8 : 20),
    int64(storedAtMs),
    Buffer.alloc((flags & V6_STORED) === 0 ? 8 : 20, 0xab),
    int32(2), // number of deliveries
    int64(0),
    int32(body.length),
    body,
    isLong ? int16(topic.length) : Buffer.from([topic.length]),
    Buffer.from(topic),
    int16(properties.length),
    Buffer.from(properties),
  ]);
  return Buffer.concat([int32(rest.length + 4), rest]);
}
