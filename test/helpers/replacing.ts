/** Returns the same port with some of its methods replaced. */
export const replacing = <T extends object>(port: T, methods: Partial<T>): T =>
  new Proxy(port, {
    get(target, name) {
      const method: unknown = methods[name as keyof T] ?? target[name as keyof T];
      return typeof method === 'function' ? (method.bind(target) as unknown) : method;
    },
  });
