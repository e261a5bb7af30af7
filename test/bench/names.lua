-- wrk ... -s names.lua URL -- PREFIX random|next COUNT: asks for PREFIX<number>, at random among
-- 1..COUNT, or each number once. PREFIX list 3,5,8: at random among those numbers.
local prefix, count, requests, last = "", 0, {}, 0
function init(args)
  prefix = args[1]
  if args[2] == "random" then
    count = tonumber(args[3])
    for i = 1, count do requests[i] = wrk.format("GET", prefix .. i) end
  elseif args[2] == "list" then
    for number in string.gmatch(args[3], "%d+") do
      count = count + 1
      requests[count] = wrk.format("GET", prefix .. number)
    end
  end
end
function request()
  if count > 0 then return requests[math.random(count)] end
  last = last + 1
  return wrk.format("GET", prefix .. last)
end
