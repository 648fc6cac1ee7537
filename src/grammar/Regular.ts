import * as CodePoints from "./CodePoints.ts"

/**
 * A regular language over Unicode scalar values. Built with the functions below, which keep it small: no choice of one, no sequence in a sequence.
 * `Not` is meaningful beside a positive item of an `And` only, so that nothing depends on what the complement is taken of.
 */
export type Regular =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Class"; readonly points: CodePoints.CodePoints }
  | { readonly _tag: "Sequence"; readonly items: ReadonlyArray<Regular> }
  | { readonly _tag: "Choice"; readonly items: ReadonlyArray<Regular> }
  | { readonly _tag: "Repeat"; readonly item: Regular; readonly min: number; readonly max: number }
  | { readonly _tag: "And"; readonly items: ReadonlyArray<Regular> }
  | { readonly _tag: "Not"; readonly item: Regular }

/** The empty text. */
export const empty: Regular = { _tag: "Text", text: "" }

/** No text at all. */
export const never: Regular = { _tag: "Class", points: CodePoints.none }

export const text = (value: string): Regular => value === "" ? empty : { _tag: "Text", text: value }

export const anyCharacter: Regular = { _tag: "Class", points: CodePoints.all }

export const characters = (points: CodePoints.CodePoints): Regular => {
  const [only, second] = points
  if (only === undefined) return never
  if (second === undefined) return only[0] === only[1] ? text(String.fromCodePoint(only[0])) : { _tag: "Class", points }
  const isAll = points.length === 2 && only[0] === 0 && only[1] === 0xd7ff && second[0] === 0xe000 && second[1] === 0x10ffff
  return isAll ? anyCharacter : { _tag: "Class", points }
}

/** Every text. */
export const everything: Regular = { _tag: "Repeat", item: anyCharacter, min: 0, max: Infinity }

export const isEmpty = (regular: Regular): boolean => regular._tag === "Text" && regular.text === ""

/** Whether the structure alone says that nothing matches. `Derivatives.isNever` looks closer. */
export const isNever = (regular: Regular): boolean => regular._tag === "Class" && regular.points.length === 0

export const sequence = (items: ReadonlyArray<Regular>): Regular => {
  const flat: Array<Regular> = []
  const add = (item: Regular): void => {
    const last = flat.at(-1)
    if (item._tag === "Sequence") item.items.forEach(add)
    else if (item._tag === "Text" && last?._tag === "Text") flat[flat.length - 1] = text(last.text + item.text)
    else if (!isEmpty(item) && !(item === everything && last === everything)) flat.push(item)
  }
  items.forEach(add)
  if (flat.some(isNever)) return never
  return flat.length === 1 ? flat[0] ?? empty : flat.length === 0 ? empty : { _tag: "Sequence", items: flat }
}

export const choice = (items: ReadonlyArray<Regular>): Regular => {
  const flat = items.flatMap((item) => item._tag === "Choice" ? item.items : [item]).filter((item) => !isNever(item))
  const kept = flat.filter((item, index) => flat.indexOf(item) === index || flat.length > 64)
  return kept.length === 1 ? kept[0] ?? never : kept.length === 0 ? never : { _tag: "Choice", items: kept }
}

export const repeat = (item: Regular, min: number, max: number): Regular => {
  if (max === 0 || isEmpty(item)) return empty
  if (isNever(item)) return min === 0 ? empty : never
  if (item === anyCharacter && min === 0 && max === Infinity) return everything
  return min === 1 && max === 1 ? item : { _tag: "Repeat", item, min, max }
}

export const optional = (item: Regular): Regular => repeat(item, 0, 1)

export const star = (item: Regular): Regular => repeat(item, 0, Infinity)

export const and = (items: ReadonlyArray<Regular>): Regular => {
  const flat = items.flatMap((item) => item._tag === "And" ? item.items : [item])
  if (flat.some(isNever)) return never
  const narrow = flat.filter((item) => item !== everything && !(item._tag === "Not" && isNever(item.item)))
  return narrow.length === 0 ? everything : narrow.length === 1 && narrow[0]?._tag !== "Not" && narrow[0] !== undefined
    ? narrow[0]
    : { _tag: "And", items: narrow.some((item) => item._tag !== "Not") ? narrow : [everything, ...narrow] }
}

export const not = (item: Regular): Regular => item._tag === "Not" ? item.item : { _tag: "Not", item }

/** Whether the empty text matches. */
export const isNullable = (regular: Regular): boolean => {
  switch (regular._tag) {
    case "Text":
      return regular.text === ""
    case "Class":
      return false
    case "Sequence":
    case "And":
      return regular.items.every(isNullable)
    case "Choice":
      return regular.items.some(isNullable)
    case "Repeat":
      return regular.min === 0 || isNullable(regular.item)
    case "Not":
      return !isNullable(regular.item)
  }
}
