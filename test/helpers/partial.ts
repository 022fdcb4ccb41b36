/** Returns a double that has only the methods that a test needs. A call to another method throws "is not a function". */
export const partial = <Port extends object>(methods: NoInfer<Partial<Port>>): Port => methods as Port;
