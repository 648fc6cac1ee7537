import { Ajv, type Options } from "ajv"
import addFormats from "ajv-formats"
import { Ajv2020 } from "ajv/dist/2020.js"

/** A JSON Schema. */
export type Schema = boolean | { readonly [keyword: string]: unknown }

const options: Options = {
  strict: false,
  validateFormats: true,
  ownProperties: true,
  multipleOfPrecision: 9,
  logger: false
}

const draft2020 = addFormats.default(new Ajv2020(options))
const draft07 = addFormats.default(new Ajv(options))

/** ajv passes over properties of this name, so that it sees another of the same form. */
const visible = <A>(value: A): A => {
  const text = JSON.stringify(value)
  return text.includes("__proto__") ? JSON.parse(text.replaceAll("__proto__", "__protO__")) : value
}

const validators = new WeakMap<object, (value: unknown) => boolean>()

/** Whether ajv takes a value for one of a schema of 2020-12, or of draft 7 where the schema is none of 2020-12. */
export const valid = (schema: Schema, value: unknown): boolean => {
  if (typeof schema === "boolean") return schema
  let validator = validators.get(schema)
  if (validator === undefined) {
    const own = visible(schema)
    validator = (draft2020.validateSchema(own) === true ? draft2020 : draft07).compile(own)
    validators.set(schema, validator)
  }
  return validator(visible(value))
}
