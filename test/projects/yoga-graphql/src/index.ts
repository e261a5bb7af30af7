import { GraphQLError } from "graphql";
import { createSchema, createYoga } from "graphql-yoga";

type Book = { id: string; title: string };
const read = async (env: any): Promise<Book[]> => (await env.STORE.get("books", "json")) ?? [];
const yoga = createYoga({
  graphqlEndpoint: "/graphql",
  landingPage: false,
  logging: false,
  schema: createSchema({
    typeDefs: `
      type Book { id: ID! title: String! shout(mark: String = "!"): String! }
      type Query { books(first: Int = 10): [Book!]! book(id: ID!): Book }
      type Mutation { add(title: String!): Book! }
      type Subscription { count(to: Int!): Int! }
    `,
    resolvers: {
      Query: {
        books: async (_: unknown, { first }: { first: number }, env: any) => (await read(env)).slice(0, first),
        book: async (_: unknown, { id }: { id: string }, env: any) => {
          const book = (await read(env)).find((b) => b.id === id);
          if (!book) throw new GraphQLError("no such book", { extensions: { code: "NOT_FOUND" } });
          return book;
        },
      },
      Book: { shout: (book: any, { mark }: { mark: string }) => book.title.toUpperCase() + mark },
      Mutation: {
        add: async (_: unknown, { title }: { title: string }, env: any) => {
          const books = await read(env);
          const book = { id: String(books.length + 1), title };
          await env.STORE.put("books", JSON.stringify([...books, book]));
          return book;
        },
      },
      Subscription: {
        count: {
          async *subscribe(_: unknown, { to }: { to: number }) {
            for (let i = 1; i <= to; i++) {
              await new Promise((resolve) => setTimeout(resolve, 5));
              yield { count: i };
            }
          },
        },
      },
    },
  }),
});
export default { fetch: yoga.fetch };
